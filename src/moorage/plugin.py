"""All that a plugin is made of. Plugins import this module, and nothing else of Moorage.

Tests of plugins import `moorage.testing`, too. `docs/writing-a-plugin.md` shows how both are used.
"""

from moorage.cluster import (
    POOL,
    Admission,
    Change,
    Counts,
    ExtendedCache,
    ExtendedResource,
    Handle,
    HandleRegistry,
    Informer,
    Ledger,
    NodeView,
    ObjectPerNode,
    RowFacts,
    Rows,
    Scope,
    UndeclaredFact,
    View,
)
from moorage.cluster.labels import ABSENT
from moorage.config import ConfigError, Duration, FeatureGates, Problem
from moorage.documents.errors import DecodeError, child, describe, item
from moorage.framework.advice import Advice, Advise, name_nodes, near_misses
from moorage.framework.attempt import Failed
from moorage.framework.edits import (
    Edit,
    SetAnnotation,
    SetLabel,
)
from moorage.framework.kubelet_admission import AdmitPods
from moorage.framework.plugin import (
    MAX_SCORE,
    UNSIGNABLE,
    Bind,
    Filter,
    Narrowed,
    NodeFilter,
    NodeScore,
    NoRemedy,
    PendingPermit,
    PendingPermits,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    Preparation,
    PreScore,
    QueueSort,
    Reduction,
    Remedy,
    Rescore,
    Reserve,
    Score,
    Scores,
    Sign,
    Wait,
    normalize_scores,
    rescore_row,
)
from moorage.framework.profile import Profile
from moorage.framework.sections import Cell, Section, ShowFigures, ShowSection
from moorage.framework.series import Series, counter, gauge, histogram
from moorage.framework.stamps import StampPods
from moorage.framework.status import Code, Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Topics, Wakeup, if_changed, on
from moorage.objects.custom import CustomKind, CustomObject
from moorage.objects.meta import Wire
from moorage.objects.node import Node
from moorage.objects.node_selector import parse_int64
from moorage.objects.pod import Pod
from moorage.objects.pod_refusal import PodRefusal
from moorage.objects.pod_spec import PodSpec
from moorage.objects.quantity import Quantity
from moorage.objects.resources import CPU, MEMORY, native
from moorage.objects.selector import Labels

__all__ = [
    "ABSENT",
    "CPU",
    "MAX_SCORE",
    "MEMORY",
    "POOL",
    "UNSIGNABLE",
    "Action",
    "Admission",
    "AdmitPods",
    "Advice",
    "Advise",
    "Bind",
    "Cell",
    "Change",
    "Code",
    "ConfigError",
    "Counts",
    "CustomKind",
    "CustomObject",
    "DecodeError",
    "Duration",
    "Edit",
    "ExtendedCache",
    "ExtendedResource",
    "Failed",
    "FeatureGates",
    "Filter",
    "Handle",
    "HandleRegistry",
    "Informer",
    "Labels",
    "Ledger",
    "Narrowed",
    "NoRemedy",
    "Node",
    "NodeFilter",
    "NodeScore",
    "NodeView",
    "ObjectPerNode",
    "PendingPermit",
    "PendingPermits",
    "Permit",
    "Plugin",
    "Pod",
    "PodRefusal",
    "PodSpec",
    "PostBind",
    "PostFilter",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreScore",
    "Preparation",
    "Problem",
    "Profile",
    "Quantity",
    "QueueSort",
    "Reason",
    "Reduction",
    "Rejected",
    "Remedy",
    "Rescore",
    "Reserve",
    "Resource",
    "RowFacts",
    "Rows",
    "Scope",
    "Score",
    "Scores",
    "Section",
    "Series",
    "SetAnnotation",
    "SetLabel",
    "ShowFigures",
    "ShowSection",
    "Sign",
    "StampPods",
    "Topics",
    "UndeclaredFact",
    "Verdict",
    "View",
    "Wait",
    "Wakeup",
    "Wire",
    "child",
    "counter",
    "describe",
    "gauge",
    "histogram",
    "if_changed",
    "item",
    "name_nodes",
    "native",
    "near_misses",
    "normalize_scores",
    "on",
    "parse_int64",
    "rescore_row",
    "unresolvable",
]
