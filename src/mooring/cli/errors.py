"""How errors are reported: one line for the user, and the exit code."""

from __future__ import annotations

import sys
import traceback
from importlib.util import find_spec

from .rendering import plain

BAD_INPUT = 2

# EX_SOFTWARE of sysexits.h.
INTERNAL = 70


def report(error: Exception, *, debug: bool) -> int:
    """Prints an error on standard error and returns the exit code."""
    lines = _input_errors(error)
    if lines:
        for text in lines:
            print(plain(text), file=sys.stderr)
        return BAD_INPUT
    if debug:
        traceback.print_exception(error)
    hint = "" if debug else " (run `mooring --debug ...` or set MOORING_DEBUG=1 for the traceback)"
    text = plain(f"{type(error).__name__}: {error}")
    print(f"mooring: internal error: {text}{hint}", file=sys.stderr)
    return INTERNAL


def _input_errors(error: Exception) -> list[str]:
    """Returns what is wrong with the user's input; nothing if the error is ours."""
    # Here, because the command that failed has loaded these already.
    from mooring.app.certificates import CertificateError
    from mooring.app.kubeconfigs import KubeconfigError
    from mooring.bench.workload import WorkloadError
    from mooring.client.connection import CredentialsError
    from mooring.client.errors import ClientError
    from mooring.config import ConfigError
    from mooring.engine.registry import RegistryError
    from mooring.framework.status import PluginError
    from mooring.simulate.problems import InputError

    one_line = (
        InputError,
        RegistryError,
        PluginError,
        WorkloadError,
        CredentialsError,
        ClientError,
        CertificateError,
        KubeconfigError,
        *_embedded_errors(),
    )
    if isinstance(error, ConfigError):
        return [f"{error.source}: {problem}" for problem in error.problems]
    if isinstance(error, one_line):
        return [str(error)]
    if isinstance(error, ModuleNotFoundError) and _is_left_out(error.name or ""):
        return [f"this install has no {error.name}: an image for production leaves it out"]
    if isinstance(error, OSError) and error.filename is not None:
        return [f"{error.filename}: {(error.strerror or str(error)).lower()}"]
    return []


def _embedded_errors() -> tuple[type[Exception], ...]:
    """Returns the errors of the embedded cluster, which an image for production leaves out."""
    if find_spec("mooring.embedded") is None:
        return ()
    from mooring.embedded.hollow.node_shapes import ShapeError
    from mooring.embedded.store.journal import DataDirError

    return ShapeError, DataDirError


def _is_left_out(module: str) -> bool:
    return module.startswith(("mooring.embedded", "mooring.demo"))
