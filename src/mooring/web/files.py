"""The files of the page, as they lie in the package."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}

#: The page itself.
INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class File:
    """A file, and by what a browser can tell whether it has it."""

    body: bytes
    content_type: str
    tag: str


def page_files() -> dict[str, File]:
    """All files by name. There are few and they are small, so they are kept in memory."""
    found = {}
    for each in files("mooring.web").joinpath("static").iterdir():
        kind = _TYPES.get(f".{each.name.rpartition('.')[2]}")
        if kind is not None:
            body = each.read_bytes()
            found[each.name] = File(body, kind, sha256(body).hexdigest()[:16])
    return found
