"""What /configz tells: the configuration in force, as a file that means the same."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.config import Configuration, ProfileConfiguration
from mooring.config.configuration import API_VERSION, KIND, SchedulerSettings


def configz(configuration: Configuration) -> bytes:
    """The configuration as JSON, under the name that kube-scheduler has it under."""
    return msgspec.json.encode({"componentconfig": written(configuration)})


def written(configuration: Configuration) -> dict[str, Any]:
    """The configuration as a file would write it, with everything spelt out."""
    told: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    for field in msgspec.structs.fields(SchedulerSettings):
        value = getattr(configuration, field.name)
        if value is not None:
            told[field.encode_name] = _spelt_out(value)
    told["profiles"] = [_profile(each) for each in configuration.profiles]
    return told


def _profile(profile: ProfileConfiguration) -> dict[str, Any]:
    # Nothing is left to the defaults, so these are switched off as a whole.
    plugins: dict[str, Any] = {"multiPoint": {"disabled": [{"name": "*"}]}}
    for point, enabled in profile.points.items():
        plugins[point] = {
            "enabled": [{"name": each.name, "weight": each.weight} for each in enabled]
        }
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": plugins,
        "pluginConfig": [
            {"name": name, "args": _spelt_out(args)}
            for name, args in sorted(profile.args.items())
            if args is not None
        ],
    }


def _spelt_out(value: Any) -> Any:
    """Structs with all their fields, those that are as by default too."""
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: _spelt_out(getattr(value, field.name))
            for field in msgspec.structs.fields(value)
            if getattr(value, field.name) is not None
        }
    if isinstance(value, list | tuple):
        return [_spelt_out(each) for each in value]
    if isinstance(value, dict):
        return {key: _spelt_out(each) for key, each in value.items()}
    return msgspec.to_builtins(value, enc_hook=str)
