"""The engine that the options of a command describe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from mooring.config import Configuration, FeatureGates, default, load
from mooring.config.written import API_VERSION, KIND
from mooring.engine import Engine
from mooring.engine.engine import reuse_settings
from mooring.engine.registry import registry
from mooring.framework.observe import UNOBSERVED, Observer
from mooring.framework.plugin import Plugin
from mooring.framework.profile import known_plugins
from mooring.simulate.problems import InputError

from .election import with_flags
from .plugin_files import plugins_of


@dataclass(frozen=True)
class Deciding:
    """What a scheduler decides by, and when it does at all."""

    config: Path | None = None
    feature_gates: str = ""
    #: Files with plugins beside those that are installed.
    plugins: Sequence[Path] | None = None
    election: Mapping[str, str | bool | None] = field(default_factory=dict)

    def engine(
        self,
        observer: Observer = UNOBSERVED,
        *,
        verify_share: float = 0.0,
        most_classes: int | None = None,
    ) -> Engine:
        plugins = registry(self._own)
        configuration = with_flags(self._configuration(plugins), self.election)
        settings = replace(reuse_settings(configuration), verify_share=verify_share)
        if most_classes is not None:
            settings = replace(settings, most_classes=most_classes)
        return Engine(configuration, plugins, settings, observer)

    @cached_property
    def text(self) -> str | bytes | None:
        """The configuration; None is the default one.

        A file of plugins is there to be tried: without a configuration all of it is enabled.
        """
        if self.config is not None:
            return _read(self.config)
        enabled = [{"name": plugin.name} for plugin in self._own]
        if not enabled:
            return None
        profile = {"plugins": {"multiPoint": {"enabled": enabled}}}
        return json.dumps({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]})

    @cached_property
    def _own(self) -> tuple[type[Plugin], ...]:
        return plugins_of(self.plugins or ())

    def _configuration(self, plugins: Mapping[str, type[Plugin]]) -> Configuration:
        known, gates = known_plugins(plugins), FeatureGates.from_text(self.feature_gates)
        if self.text is None:
            return default(known, gates)
        return load(self.text, known=known, source=str(self.config or "--plugins"), gates=gates)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, (error.strerror or str(error)).lower()) from error
