"""The built-in plugins to which the laws of `moorage.testing` apply."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.config import FeatureGates
from moorage.documents.conversion import to_struct
from moorage.framework.plugin import Filter, Plugin, Score
from moorage.plugins.coexist_policy import CoexistPolicy, CoexistPolicyArgs
from moorage.plugins.dynamic_resources.dynamic_resources import DynamicResources
from moorage.plugins.gpu_aware import GPUAware
from moorage.plugins.inter_pod_affinity.inter_pod_affinity import InterPodAffinity
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing.declarations import Declarations
from tests.builders import Manifest
from tests.registered import PLUGINS

FILTERS = [plugin for plugin in PLUGINS if issubclass(plugin, Filter)]
SCORES = [plugin for plugin in PLUGINS if issubclass(plugin, Score)]
EITHER = [plugin for plugin in PLUGINS if issubclass(plugin, Filter | Score)]


#: Args without which a plugin would not serve one of its points.
ARGS: dict[type[Plugin], msgspec.Struct] = {
    CoexistPolicy: CoexistPolicyArgs(prefer_smallest_node=True)
}


GPUS = "example.com/gpu"
#: Other arguments with which plugins read more, as a profile may give them.
MORE_ARGS: dict[type[Plugin], tuple[Manifest, ...]] = {
    NodeResourcesFit: tuple(
        {"scoringStrategy": {"type": kind, "resources": [{"name": GPUS, "weight": 1}]}}
        for kind in ("LeastAllocated", "MostAllocated")
    ),
    DynamicResources: ({"preemptDevices": True},),
    GPUAware: tuple(
        {"resources": [GPUS], "deviceClasses": ["gpu"], **more}
        for more in ({}, {"mode": "Score"}, {"reservePerFreeGPU": {"cpu": 1}})
    ),
    InterPodAffinity: ({"ignorePreferredTermsOfExistingPods": True},),
}


def variants(kind: type[Plugin]) -> list[Any]:
    """The plugin as `build` makes it, and with other arguments."""
    made = [build(kind)]
    for given in MORE_ARGS.get(kind, ()):
        assert kind.Args is not None
        plugin = kind.create(to_struct(kind.Args, given), FeatureGates())
        made.append(Declarations().limited(plugin))
    return made


def build(kind: type[Plugin]) -> Any:
    """The plugin as the default profile has it, but with everything it can do switched on.

    It sees no more of the cluster than it declares.
    """
    made = kind.create(ARGS.get(kind) or (kind.Args and kind.Args()), FeatureGates())
    return Declarations().limited(made)
