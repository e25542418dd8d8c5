"""The engine that the options of a command describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mooring.config import Configuration, FeatureGates, default, load
from mooring.engine import Engine
from mooring.engine.engine import reuse_settings
from mooring.engine.registry import registry
from mooring.framework.observe import UNOBSERVED, Observer
from mooring.framework.profile import known_plugins
from mooring.simulate.problems import InputError

from .election import with_flags


def engine(
    config: Path | None,
    feature_gates: str,
    *,
    verify_share: float = 0.0,
    most_classes: int | None = None,
    election: Mapping[str, str | bool | None] | None = None,
    observer: Observer = UNOBSERVED,
) -> Engine:
    """A new engine with the plugins that are installed."""
    plugins = registry()
    gates = FeatureGates.from_text(feature_gates)
    known = known_plugins(plugins)
    configuration: Configuration
    if config is None:
        configuration = default(known, gates)
    else:
        configuration = load(_text(config), known=known, source=str(config), gates=gates)
    configuration = with_flags(configuration, election or {})
    settings = replace(reuse_settings(configuration), verify_share=verify_share)
    if most_classes is not None:
        settings = replace(settings, most_classes=most_classes)
    return Engine(configuration, plugins, settings, observer)


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, (error.strerror or str(error)).lower()) from error
