"""Feature gates: which features are on, besides the configuration file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, Self

from moorage.documents.errors import Problems, describe

from .kubernetes_versions import DEFAULT_VERSION, KubernetesVersion


class _Stage(Enum):
    """The default of a gate, and whether it can be changed."""

    #: On, and honoured when it is switched off, or without effect on any decision here.
    ON = auto()
    OFF = auto()
    #: On for good: kube-scheduler refuses to switch it, and so do we.
    LOCKED = auto()
    #: On, and Moorage cannot do without what it stands for, although kube-scheduler can.
    FIXED = auto()
    #: Off, and what it would switch on is missing here.
    NOT_YET = auto()


# Every gate that kube-scheduler 1.36 or 1.37 reads, as it is in 1.36; `kubernetes_versions` says
# which are on by default since. Those that only the API server obeys, or an endpoint or a cache of
# the client, change no decision.
_KUBERNETES = {
    "ClearingNominatedNodeNameAfterBinding": _Stage.ON,
    "ComponentFlagz": _Stage.ON,
    "ComponentStatusz": _Stage.ON,
    "CompositePodGroup": _Stage.NOT_YET,
    "CoordinatedLeaderElection": _Stage.NOT_YET,
    "DRAAdminAccess": _Stage.LOCKED,
    "DRAConsumableCapacity": _Stage.FIXED,
    "DRADerivedAttributes": _Stage.NOT_YET,
    "DRADeviceBindingConditions": _Stage.FIXED,
    "DRADeviceCompatibilityGroups": _Stage.NOT_YET,
    "DRADeviceTaintRules": _Stage.OFF,
    "DRADeviceTaints": _Stage.FIXED,
    "DRAExtendedResource": _Stage.FIXED,
    "DRAFractionalCapacityRange": _Stage.OFF,
    "DRAListTypeAttributes": _Stage.NOT_YET,
    "DRANodeAllocatableResources": _Stage.NOT_YET,
    "DRAOptionalNodeOperations": _Stage.NOT_YET,
    "DRAPartitionableDevices": _Stage.FIXED,
    "DRAPrioritizedList": _Stage.FIXED,
    "DRAResourceClaimDeviceStatus": _Stage.ON,
    "DRAResourceClaimGranularStatusAuthorization": _Stage.ON,
    "DRASchedulerFilterTimeout": _Stage.ON,
    "DRAWorkloadResourceClaims": _Stage.OFF,
    "DynamicResourceAllocation": _Stage.LOCKED,
    "GangScheduling": _Stage.OFF,
    "GenericWorkload": _Stage.OFF,
    "InPlacePodLevelResourcesVerticalScaling": _Stage.FIXED,
    "InPlacePodVerticalScaling": _Stage.LOCKED,
    "InPlacePodVerticalScalingSchedulerPreemption": _Stage.NOT_YET,
    # Another way to count the same.
    "InterPodAffinityHostnameFastPath": _Stage.OFF,
    "MatchLabelKeysInPodAffinity": _Stage.LOCKED,
    "MatchLabelKeysInPodTopologySpread": _Stage.FIXED,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _Stage.ON,
    "MutableCSINodeAllocatableCount": _Stage.ON,
    "NodeDeclaredFeatures": _Stage.ON,
    "NodeInclusionPolicyInPodTopologySpread": _Stage.LOCKED,
    "NominatedNodeNameForExpectation": _Stage.FIXED,
    "OpportunisticBatching": _Stage.ON,
    "PodGroupPreemptionPolicy": _Stage.OFF,
    "PodLevelResources": _Stage.FIXED,
    "PodObservedGenerationTracking": _Stage.LOCKED,
    # API calls never hold up decisions here, so these two are right either way.
    "SchedulerAsyncAPICalls": _Stage.OFF,
    "SchedulerAsyncPreemption": _Stage.ON,
    "SchedulerPopFromBackoffQ": _Stage.ON,
    # Which pods an event may help is found by topics here, either way.
    "SchedulerPreQueueingHints": _Stage.OFF,
    "SchedulerQueueingHints": _Stage.LOCKED,
    "SidecarContainers": _Stage.LOCKED,
    "StorageCapacityScoring": _Stage.OFF,
    "TaintTolerationComparisonOperators": _Stage.OFF,
    "TopologyAwareWorkloadScheduling": _Stage.OFF,
    "VolumeAttributesClass": _Stage.LOCKED,
    "VolumeLimitScaling": _Stage.OFF,
    "WatchList": _Stage.ON,
    "WorkloadAwarePreemption": _Stage.OFF,
}

_OWN = {
    "AutoSignatures": _Stage.OFF,
    "CoexistPolicy": _Stage.ON,
    "Coscheduling": _Stage.OFF,
    "EquivalenceCache": _Stage.ON,
}

#: The gates that only Moorage knows.
OWN = frozenset(_OWN)

_STAGES = _KUBERNETES | _OWN
_OFF = frozenset(name for name, stage in _STAGES.items() if stage in (_Stage.OFF, _Stage.NOT_YET))

# Gates that need another one to be on.
_NEEDS = {
    "DRAWorkloadResourceClaims": "GenericWorkload",
    "GangScheduling": "GenericWorkload",
    "PodGroupPreemptionPolicy": "GenericWorkload",
    "TopologyAwareWorkloadScheduling": "GenericWorkload",
    "WorkloadAwarePreemption": "GangScheduling",
}

# The name that the batching proposal uses.
_ALIASES = {"SchedulerOpportunisticBatching": "OpportunisticBatching"}

# What Go's strconv.ParseBool takes.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}

SOURCE = "--feature-gates"


class FeatureGates(Mapping[str, bool]):
    """Every known gate and whether it is on, for a version of Kubernetes."""

    __slots__ = ("_enabled", "version")

    def __init__(self, version: KubernetesVersion = DEFAULT_VERSION, /, **switched: bool) -> None:
        self.version = version
        self._enabled: Mapping[str, bool] = _defaults(version) | _check(switched, "<gates>")

    @classmethod
    def parse(
        cls,
        raw: Mapping[str, Any],
        source: str = SOURCE,
        version: KubernetesVersion = DEFAULT_VERSION,
    ) -> Self:
        """Returns the gates with some of them switched.

        Raises ConfigError naming every wrong gate.
        """
        return cls(version, **_check(raw, source))

    @classmethod
    def from_text(
        cls, text: str, source: str = SOURCE, version: KubernetesVersion = DEFAULT_VERSION
    ) -> Self:
        """Reads `A=true,B=false`; raises ConfigError naming every wrong gate."""
        return cls(version, **changes(text, source))

    def switch(self, **switched: bool) -> Self:
        """Returns the same gates with some of them switched."""
        return type(self)(self.version, **{**self._find_changed(), **switched})

    def _find_changed(self) -> dict[str, bool]:
        defaults = _defaults(self.version)
        return {gate: on for gate, on in self._enabled.items() if on is not defaults[gate]}

    def enabled(self, name: str) -> bool:
        """Whether a gate is on; raises KeyError if there is no such gate."""
        return self._enabled[_ALIASES.get(name, name)]

    def __getitem__(self, name: str) -> bool:
        return self.enabled(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._enabled, *_ALIASES))

    def __len__(self) -> int:
        return len(self._enabled) + len(_ALIASES)

    def __repr__(self) -> str:
        return f"FeatureGates.parse({self._find_changed()}, version={self.version})"


def _defaults(version: KubernetesVersion) -> dict[str, bool]:
    return {name: name not in _OFF or name in version.switched_on for name in _STAGES}


def changes(text: str, source: str = SOURCE) -> dict[str, bool]:
    """Returns the gates that `A=true,B=false` switches.

    Raises ConfigError naming every wrong gate.
    """
    raw: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        # Components other than kube have no gates here, and keep their prefix to be refused.
        name, _, value = part.removeprefix("kube:").partition("=")
        raw[name.strip()] = _BOOLEANS.get(value.strip(), value.strip())
    return _check(raw, source)


def _check(raw: Mapping[str, Any], source: str) -> dict[str, bool]:
    problems = Problems()
    enabled: dict[str, bool] = {}
    for name, value in raw.items():
        gate = _ALIASES.get(name, name)
        wrong = _refusal(gate, value)
        if wrong is not None:
            problems.add(name, wrong)
        elif enabled.setdefault(gate, value) is not value:
            problems.add(name, f"contradicts {gate}, which is the same gate")
    for gate, needed in _NEEDS.items():
        if enabled.get(gate) and not enabled.get(needed):
            problems.add(gate, f"needs {needed}, which is off")
    problems.raise_any(source)
    return enabled


def _refusal(gate: str, value: object) -> str | None:
    stage = _STAGES.get(gate)
    if stage is None:
        return "unknown feature gate"
    if not isinstance(value, bool):
        return f"must be true or false, got {describe(value)}"
    if stage is _Stage.LOCKED and not value:
        return "is locked to true"
    if stage is _Stage.FIXED and not value:
        return "cannot be switched off in Moorage"
    if stage is _Stage.NOT_YET and value:
        return "not supported by Moorage yet"
    return None
