"""Template files: read once, written out for each object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mooring.config.problems import shown

from .cases import load_yaml
from .go_template import Template
from .problems import WorkloadError

Manifest = Mapping[str, Any]

# Where users choose the keys.
_FREE_KEYS = frozenset(
    (
        "allocatable",
        "annotations",
        "capacity",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "requests",
        "selector",
    )
)

_KIND = re.compile(r"(?:^|[{,] *)kind: *[\"']?(\w+)", re.MULTILINE)

# Objects that differ in their index alone would fill the memory.
_MOST_KEPT = 64


class Templates:
    """The templates that the test cases of a file name, by their path beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._templates: dict[str, Template] = {}
        self._written: dict[tuple[str, str], Manifest] = {}

    def manifest(self, path: str, given: Mapping[str, Any] | None = None) -> Manifest:
        """The object that a template describes; the same value for the same text."""
        text = self._template(path).render(given or {})
        known = self._written.get((path, text))
        if known is None:
            known = self._parsed(path, text)
            if len(self._written) >= _MOST_KEPT:
                self._written.clear()
            self._written[path, text] = known
        return known

    def kind(self, path: str) -> str:
        """The kind of object that a template describes, whatever it is given."""
        match = _KIND.search(self._template(path).content)
        if match is None:
            raise WorkloadError(self._folder / path, "kind", "is required")
        return match[1]

    def _template(self, path: str) -> Template:
        template = self._templates.get(path)
        if template is None:
            template = self._templates[path] = self._read(path)
        return template

    def _read(self, path: str) -> Template:
        file = self._folder / path
        try:
            return Template(file.read_text(), str(file))
        except (OSError, UnicodeDecodeError) as error:
            told = error.strerror if isinstance(error, OSError) else "is not text"
            raise WorkloadError(file, (told or str(error)).lower()) from None

    def _parsed(self, path: str, text: str) -> Manifest:
        file = self._folder / path
        raw = load_yaml(file, text)
        if not isinstance(raw, Mapping):
            raise WorkloadError(file, f"must be an object, got {shown(raw)}")
        for field in ("apiVersion", "kind"):
            if not isinstance(raw.get(field), str):
                raise WorkloadError(file, field, "is required")
        if not isinstance(raw.get("metadata", {}), Mapping):
            raise WorkloadError(file, "metadata", "must be a mapping")
        spelled: Manifest = _spelled(raw)
        return spelled


def _spelled(raw: Any) -> Any:
    """The object with fields in their usual spelling.

    Go reads `NodeTaintsPolicy` for `nodeTaintsPolicy`, and some templates rely on it.
    """
    if isinstance(raw, list):
        return [_spelled(each) for each in raw]
    if not isinstance(raw, Mapping):
        return raw
    return {
        _lowered(key): value if key in _FREE_KEYS else _spelled(value) for key, value in raw.items()
    }


def _lowered(key: Any) -> Any:
    return key[:1].lower() + key[1:] if isinstance(key, str) and key.isidentifier() else key
