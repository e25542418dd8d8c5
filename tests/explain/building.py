"""Engines with a cluster in them, to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.config import FeatureGates, default, load_mapping
from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.framework.plugin import Registry
from moorage.framework.profile import known_plugins
from moorage.objects.kinds import Object
from tests import builders
from tests.registered import REGISTRY

API = "kubescheduler.config.k8s.io/v1"


def configuration(*plugins: str, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The default profile with more plugins, wherever they serve."""
    return {
        "apiVersion": API,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": name} for name in plugins]}},
                "pluginConfig": [
                    {"name": name, "args": dict(given)} for name, given in (args or {}).items()
                ],
            }
        ],
    }


def engine(
    *objects: Object,
    config: Mapping[str, Any] | None = None,
    gates: Mapping[str, bool] | None = None,
    plugins: Registry = REGISTRY,
) -> Engine:
    """An engine that has heard of these; its cluster is checked when the test ends."""
    known, switched = known_plugins(plugins), FeatureGates.parse(dict(gates or {}))
    if config is None:
        made = Engine(default(known, switched), plugins)
    else:
        made = Engine(load_mapping(config, known=known, gates=switched, source="test"), plugins)
    builders.made.append(made.cluster)
    for item in objects:
        made.handle(Applied(item), 0.0)
    return made
