"""Writing the file with which kubectl finds the embedded cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from mooring.documents.errors import DecodeError, InputError
from mooring.documents.yaml_text import read_document

_NAME = "kubeconfig"


class KubeconfigError(InputError):
    """A file that must not be overwritten; the text names it."""


@contextmanager
def write_kubeconfig(content: Mapping[str, Any], wanted: Path | None) -> Iterator[Path]:
    """The file, for the owner alone. Where nobody said where, it goes away in the end."""
    text = yaml.safe_dump(dict(content), sort_keys=False)
    if wanted is not None:
        _refuse_strangers(wanted, content["current-context"])
        _write(wanted, text)
        yield wanted
        return
    # A runtime folder is the user's own, and gone after the session.
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    place = runtime if runtime and os.access(runtime, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="mooring-", dir=place) as folder:
        path = Path(folder, _NAME)
        _write(path, text)
        yield path


def _refuse_strangers(path: Path, context: str) -> None:
    """Nobody's access to other clusters is overwritten."""
    if not path.exists():
        return
    try:
        known = read_document(path.read_bytes()) or {}
        contexts = [each["name"] for each in known.get("contexts") or ()]
    except (DecodeError, AttributeError, KeyError, TypeError):
        raise KubeconfigError(f"{path}: exists, and is no kubeconfig of Mooring's") from None
    if contexts not in ([], [context]):
        others = ", ".join(str(each) for each in contexts if each != context)
        raise KubeconfigError(f"{path}: leads to other clusters, too ({others}); name another file")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A new file beside it, so that the token is never in a file that others may read.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(name).replace(path)
