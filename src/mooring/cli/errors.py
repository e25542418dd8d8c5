"""What the user is told when something went wrong, and the exit code for it."""

from __future__ import annotations

import sys
import traceback

from .text import plain

BAD_INPUT = 2

# EX_SOFTWARE of sysexits.h.
INTERNAL = 70


def report(error: Exception, *, debug: bool) -> int:
    """Prints an error; returns the exit code."""
    # Here, because the command that failed has loaded these already.
    from mooring.app.certificates import CertificateError
    from mooring.app.kubeconfigs import KubeconfigError
    from mooring.bench.problems import WorkloadError
    from mooring.client.connection import CredentialsError
    from mooring.client.errors import ClientError
    from mooring.config import ConfigError
    from mooring.embedded.hollow.shapes import ShapeError
    from mooring.embedded.persistence import DataDirError
    from mooring.engine.registry import RegistryError
    from mooring.simulate.problems import InputError

    if isinstance(error, ConfigError):
        for problem in error.problems:
            print(plain(f"{error.source}: {problem}"), file=sys.stderr)
        return BAD_INPUT
    unusable = (
        InputError,
        RegistryError,
        WorkloadError,
        CredentialsError,
        ClientError,
        CertificateError,
        KubeconfigError,
        ShapeError,
        DataDirError,
    )
    if isinstance(error, unusable):
        print(plain(str(error)), file=sys.stderr)
        return BAD_INPUT
    if isinstance(error, OSError) and error.filename is not None:
        print(plain(f"{error.filename}: {(error.strerror or str(error)).lower()}"), file=sys.stderr)
        return BAD_INPUT
    if debug:
        traceback.print_exception(error)
    told = plain(f"{type(error).__name__}: {error}")
    hint = "" if debug else " (run `mooring --debug ...` or set MOORING_DEBUG=1 for the traceback)"
    print(f"mooring: internal error: {told}{hint}", file=sys.stderr)
    return INTERNAL
