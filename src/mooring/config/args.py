"""The args that a profile gives to its plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from . import strict
from .defaults import IN_TREE, REMOVED
from .known import KnownPlugin
from .problems import Problems, child, item, shown
from .written import API_VERSION, WrittenPluginConfig


def unusable(name: str, known: Mapping[str, KnownPlugin]) -> str | None:
    """Why a plugin cannot be named in a file, None if it can."""
    if not name:
        return "is required"
    if name in known:
        return None
    if name in REMOVED:
        return f"plugin {shown(name)} was removed, NodeVolumeLimits does its work"
    if name in IN_TREE:
        return f"plugin {shown(name)} is not supported by Mooring yet"
    return f"unknown plugin {shown(name)}"


def read_args(
    written: Sequence[WrittenPluginConfig],
    path: str,
    known: Mapping[str, KnownPlugin],
    problems: Problems,
) -> dict[str, msgspec.Struct | None]:
    """The args of every plugin that is given some, as far as they can be read."""
    read: dict[str, msgspec.Struct | None] = {}
    for index, entry in enumerate(written):
        at = item(path, index)
        wrong = unusable(entry.name, known)
        if wrong is None and entry.name in read:
            wrong = f"args of plugin {shown(entry.name)} are given twice"
        if wrong is None:
            read[entry.name] = _given(entry, known[entry.name].args, child(at, "args"), problems)
        else:
            problems.add(child(at, "name"), wrong)
    return read


def decode_args(
    wanted: type[msgspec.Struct], raw: Mapping[str, Any], path: str, problems: Problems
) -> msgspec.Struct | None:
    """The args of a type, decoded and checked."""
    args: msgspec.Struct | None = strict.convert(wanted, raw, path, problems)
    strict.check(args, path, problems)
    return args


def _given(
    entry: WrittenPluginConfig, wanted: type[msgspec.Struct] | None, path: str, problems: Problems
) -> msgspec.Struct | None:
    raw = dict(entry.args or {})
    for field, expected in (("apiVersion", API_VERSION), ("kind", f"{entry.name}Args")):
        found = raw.pop(field, None)
        if found not in (None, "", expected):
            problems.add(child(path, field), f"must be {shown(expected)}, got {shown(found)}")
    if wanted is not None:
        return decode_args(wanted, raw, path, problems)
    if raw:
        problems.add(path, f"plugin {shown(entry.name)} takes no args")
    return None
