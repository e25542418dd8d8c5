"""The built-in plugins: a file each, or a folder where one is large.

They only decide: no I/O, no clock, and no knowledge of the engine that runs them. `BUILTIN` lists
all of them.
"""

from moorage.framework.plugin import Plugin, Registry

from .coexist_policy import CoexistPolicy
from .default_binder import DefaultBinder
from .dynamic_resources.dynamic_resources import DynamicResources
from .exclusive_node_limits import ExclusiveNodeLimits
from .gpu_aware import GPUAware
from .image_locality import ImageLocality
from .inter_pod_affinity.inter_pod_affinity import InterPodAffinity
from .node_affinity import NodeAffinity
from .node_declared_features import NodeDeclaredFeatures
from .node_name import NodeName
from .node_ports import NodePorts
from .node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from .node_resources_fit import NodeResourcesFit
from .node_unschedulable import NodeUnschedulable
from .preemption.default_preemption import DefaultPreemption
from .priority_sort import PrioritySort
from .scheduling_gates import SchedulingGates
from .taint_toleration import TaintToleration
from .topology_spread.pod_topology_spread import PodTopologySpread
from .volumes.node_volume_limits import NodeVolumeLimits
from .volumes.volume_binding import VolumeBinding
from .volumes.volume_restrictions import VolumeRestrictions
from .volumes.volume_zone import VolumeZone

#: In the order in which the default profile runs them; after them, those that are off by default.
BUILTIN: tuple[type[Plugin], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    CoexistPolicy,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    GPUAware,
    ExclusiveNodeLimits,
)

#: The same by name.
REGISTRY: Registry = {plugin.name: plugin for plugin in BUILTIN}

__all__ = ["BUILTIN", "REGISTRY"]
