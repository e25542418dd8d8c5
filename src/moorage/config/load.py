"""Reads a whole configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.documents import conversion
from moorage.documents.errors import ConfigError, DecodeError, Problem, Problems, describe, item
from moorage.documents.yaml_text import read_document

from .configuration import (
    API_VERSION,
    KIND,
    Configuration,
    ConfigurationDocument,
    ProfileConfiguration,
    ProfileDocument,
    SchedulerSettings,
    apply_defaults,
)
from .extenders import find_ignored_resources, order_extenders
from .gates import FeatureGates
from .group_plugins import add_group_plugins
from .plugin_sets import GATED, KnownPlugin
from .profiles import COSCHEDULING, ProfileReader, compare_profiles, uses_coscheduling

DEFAULT_SCHEDULER_NAME = "default-scheduler"

# The plugin that counts resources, unless they are left to extenders.
_FIT = "NodeResourcesFit"


def load(
    text: str | bytes,
    *,
    known: Mapping[str, KnownPlugin],
    source: str = "<config>",
    gates: FeatureGates | None = None,
) -> Configuration:
    """Reads YAML or JSON text; raises ConfigError with everything that is wrong with it."""
    try:
        raw = read_document(text)
    except DecodeError as error:
        raise ConfigError((Problem("", error.message),), source) from None
    return load_mapping(raw, known=known, source=source, gates=gates)


def load_mapping(
    raw: Mapping[str, Any],
    *,
    known: Mapping[str, KnownPlugin],
    source: str = "<config>",
    gates: FeatureGates | None = None,
) -> Configuration:
    """Reads the output of a YAML or JSON parser; raises ConfigError as `load` does."""
    problems = Problems()
    return _load(raw, known, source, gates or FeatureGates(), problems)


def default(known: Mapping[str, KnownPlugin], gates: FeatureGates | None = None) -> Configuration:
    """Returns the configuration that is used without a file."""
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
        raise ConfigError(tuple(header), source)
    written: ConfigurationDocument = conversion.convert(ConfigurationDocument, raw, "", problems)
    conversion.check(written, "", problems)
    profiles = _profiles(written, known, gates, problems)
    if uses_coscheduling(written.profiles):
        gates = gates.switch(**{COSCHEDULING: True})
    problems.raise_any(source)
    settings = {name: getattr(written, name) for name in SchedulerSettings.__struct_fields__}
    settings["leader_election"] = apply_defaults(written.leader_election)
    settings["client_connection"] = apply_defaults(written.client_connection)
    settings["extenders"] = order_extenders(written.extenders)
    ignored = find_ignored_resources(written.extenders)
    if ignored:
        profiles = tuple(_leave_to_extenders(profile, ignored) for profile in profiles)
    return Configuration(**settings, profiles=profiles, gates=gates)


def _leave_to_extenders(
    profile: ProfileConfiguration, ignored: tuple[str, ...]
) -> ProfileConfiguration:
    """Returns the profile with its own list of ignored resources replaced, as in kube-scheduler."""
    args = profile.args.get(_FIT)
    if args is None:
        return profile
    args = msgspec.structs.replace(args, ignored_resources=ignored)
    return msgspec.structs.replace(profile, args={**profile.args, _FIT: args})


def _header_problems(raw: Any) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return [Problem("", f"must be a mapping, got {describe(raw)}")]
    return [
        Problem(field, f"must be {describe(expected)}, got {describe(raw.get(field))}")
        for field, expected in (("apiVersion", API_VERSION), ("kind", KIND))
        if raw.get(field) != expected
    ]


def _profiles(
    written: ConfigurationDocument,
    known: Mapping[str, KnownPlugin],
    gates: FeatureGates,
    problems: Problems,
) -> tuple[ProfileConfiguration, ...]:
    reader = ProfileReader(
        add_group_plugins(known),
        gates,
        written.percentage_of_nodes_to_score or 0,
        problems,
    )
    profiles = tuple(
        reader.read(profile, item("profiles", index))
        for index, profile in enumerate(_add_name(written.profiles))
    )
    compare_profiles(profiles, "profiles", problems)
    for index, profile in enumerate(profiles):
        for name in profile.args.keys() & GATED.keys():
            if not gates.enabled(GATED[name]):
                text = (
                    f"plugin {describe(name)} is enabled, but the feature gate of that name is off"
                )
                problems.add(f"{item('profiles', index)}.plugins", text)
    return profiles


def _add_name(profiles: tuple[ProfileDocument, ...]) -> tuple[ProfileDocument, ...]:
    """Returns at least one profile; a single one without a name gets the default name."""
    profiles = profiles or (ProfileDocument(),)
    if len(profiles) > 1 or profiles[0].scheduler_name is not None:
        return profiles
    return (msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
