"""What an address stands for."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.embedded.errors import no_such_path
from mooring.embedded.kinds import Kind, Kinds


@dataclass(frozen=True, slots=True)
class Address:
    """A kind, and which of its objects, and which part of that."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    part: str = ""


def locate(kinds: Kinds, path: str) -> Address:
    """Reads /api/v1/... and /apis/group/version/..."""
    steps = path.strip("/").split("/")
    if steps[0] == "api" and len(steps) > 2:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) > 3:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        raise no_such_path()
    if len(rest) > 2 and rest[0] == "namespaces":
        below = kinds.at(group, version, rest[2])
        if below is not None and below.namespaced:
            return _address(below, rest[1], rest[3:])
    kind = kinds.at(group, version, rest[0])
    if kind is None or (kind.namespaced and len(rest) > 1):
        raise no_such_path()
    return _address(kind, "", rest[1:])


def _address(kind: Kind, namespace: str, rest: list[str]) -> Address:
    if len(rest) > 2 or "" in rest:
        raise no_such_path()
    name, part = (*rest, "", "")[:2]
    if part and part not in kind.subresources:
        raise no_such_path()
    return Address(kind, namespace, name, part)
