"""Reading a whole configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from . import document, strict
from .configuration import Configuration, ProfileConfiguration, Settings, filled
from .defaults import GATED, default_plugins
from .gates import FeatureGates
from .known import KnownPlugin
from .problems import ConfigError, Problem, Problems, item, shown
from .profiles import ProfileReader, compare
from .written import API_VERSION, KIND, WrittenConfiguration, WrittenProfile

DEFAULT_SCHEDULER_NAME = "default-scheduler"


def load(
    text: str | bytes,
    *,
    known: Mapping[str, KnownPlugin],
    source: str = "<config>",
    gates: FeatureGates | None = None,
) -> Configuration:
    """Reads YAML or JSON text; raises ConfigError with everything that is wrong with it."""
    problems = Problems()
    raw = document.read(text, problems)
    if raw is None:
        problems.raise_any(source)
    return _load(raw, known, source, gates or FeatureGates(), problems)


def load_mapping(
    raw: Mapping[str, Any],
    *,
    known: Mapping[str, KnownPlugin],
    source: str = "<config>",
    gates: FeatureGates | None = None,
) -> Configuration:
    """Reads what a YAML or JSON parser gave; raises ConfigError as `load` does."""
    return _load(raw, known, source, gates or FeatureGates(), Problems())


def default(known: Mapping[str, KnownPlugin], gates: FeatureGates | None = None) -> Configuration:
    """The configuration in force when there is no file."""
    return load_mapping({"apiVersion": API_VERSION, "kind": KIND}, known=known, gates=gates)


def _load(
    raw: Any,
    known: Mapping[str, KnownPlugin],
    source: str,
    gates: FeatureGates,
    problems: Problems,
) -> Configuration:
    header = _header_problems(raw)
    if header:
        # What another kind or version would have meant is not worth guessing.
        raise ConfigError((*problems, *header), source)
    written: WrittenConfiguration = strict.convert(WrittenConfiguration, raw, "", problems)
    strict.check(written, "", problems)
    profiles = _profiles(written, known, gates, problems)
    problems.raise_any(source)
    settings = {name: getattr(written, name) for name in Settings.__struct_fields__}
    settings["leader_election"] = filled(written.leader_election)
    settings["client_connection"] = filled(written.client_connection)
    return Configuration(**settings, profiles=profiles, gates=gates)


def _header_problems(raw: Any) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return [Problem("", f"must be a mapping, got {shown(raw)}")]
    return [
        Problem(field, f"must be {shown(expected)}, got {shown(raw.get(field))}")
        for field, expected in (("apiVersion", API_VERSION), ("kind", KIND))
        if raw.get(field) != expected
    ]


def _profiles(
    written: WrittenConfiguration,
    known: Mapping[str, KnownPlugin],
    gates: FeatureGates,
    problems: Problems,
) -> tuple[ProfileConfiguration, ...]:
    reader = ProfileReader(
        known,
        default_plugins(gates),
        written.percentage_of_nodes_to_score or 0,
        problems,
    )
    profiles = tuple(
        reader.read(profile, item("profiles", index))
        for index, profile in enumerate(_named(written.profiles))
    )
    compare(profiles, "profiles", problems)
    for index, profile in enumerate(profiles):
        for name in profile.args.keys() & GATED:
            if not gates.enabled(name):
                told = f"plugin {shown(name)} is enabled, but the feature gate of that name is off"
                problems.add(f"{item('profiles', index)}.plugins", told)
    return profiles


def _named(profiles: tuple[WrittenProfile, ...]) -> tuple[WrittenProfile, ...]:
    """The profiles, at least one; a single one need not say its name."""
    profiles = profiles or (WrittenProfile(),)
    if len(profiles) > 1 or profiles[0].scheduler_name is not None:
        return profiles
    return (msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
