"""Events in a cluster, and which of them wake a rejected pod.

Such a pod waits for an event that the plugin has registered. The plugin's hint then says whether
the event may help the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Any

from moorage.objects.pod import Pod


class Resource(StrEnum):
    """The kinds of objects of events. The values are kube-scheduler's names."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_TAINT_RULE = "resource.k8s.io/DeviceTaintRule"
    ANYTHING = "*"

    # It is looked up for every event, and that of an enum is many times slower.
    __hash__ = str.__hash__

    def covers(self, other: Resource | str) -> bool:
        """Whether a registration for this kind matches events about the other."""
        if self is other or self is Resource.ANYTHING:
            return True
        return self is Resource.POD and other in (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD)


class Action(IntFlag):
    """What happened to the object."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_CLAIM = 4096

    UPDATE = 8188
    ALL = 8191

    __hash__ = int.__hash__


# Looked up once, because that takes long for an enum, and every event asks.
_ANYTHING = Resource.ANYTHING


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event, or in a registration the events that a plugin listens to."""

    #: A kind that is known, or what a custom one is called: `CustomKind.resource`.
    resource: Resource | str
    action: Action
    #: kube-scheduler's label, for metrics: "AssignedPodDelete", "NodeAdd", …
    label: str = ""

    def hears(self, happened: ClusterEvent) -> bool:
        """Whether this registration matches an event.

        A generic update (all update bits) matches only registrations for every update.
        """
        if self.resource is Resource.ANYTHING:
            return True
        return (
            self._covers(happened.resource)
            and bool(self.action & happened.action)
            and happened.action <= self.action
        )

    def _covers(self, other: Resource | str) -> bool:
        if isinstance(self.resource, Resource):
            return self.resource.covers(other)
        return self.resource == other

    @property
    def is_wildcard(self) -> bool:
        return self.resource is _ANYTHING


#: Does what happened (old value, new value; None where there is none) concern this waiting pod?
Hint = Callable[[Pod, Any, Any], bool]


#: What a hint reads of the waiting pod beyond its template, namespace and labels.
Reads = Callable[[Pod], Hashable]


@dataclass(frozen=True, slots=True)
class Topics:
    """What an event is about, or what pods wait for. A pod that shares no topic is not asked.

    A topic is any hashable value. None stands for all topics, and is right wherever a narrower
    answer would cost much.
    """

    of_event: Callable[[Any, Any], Iterable[Hashable] | None]
    of_pod: Callable[[Pod], Iterable[Hashable] | None] | None = None


@dataclass(frozen=True, slots=True)
class Wakeup:
    """A registration: after such an event, a rejected pod is tried again if `hint` agrees.

    Of pods that have the same template, namespace and labels, that all plugins sign alike and for
    which `reads` returns the same, one is asked for all, unless the event is about one of them.
    """

    event: ClusterEvent
    hint: Hint | None = None
    reads: Reads | None = None
    #: Whether that holds for pods that are not signed, too.
    alike: bool = False
    topics: Topics | None = None


def on(
    resource: Resource | str,
    action: Action,
    hint: Hint | None = None,
    *,
    reads: Reads | None = None,
    alike: bool = False,
    topics: Topics | None = None,
) -> Wakeup:
    """Makes a registration that reads like a table: on(NODE, ADD | UPDATE_NODE_LABEL, hint)."""
    event = ClusterEvent(resource, action)
    known = alike or hint is None or reads is not None
    return Wakeup(event, hint, reads, known, topics)


def _find_nothing(old: Any, new: Any) -> tuple[()]:
    return ()


#: For a hint that events about other objects than the pod itself never win over.
ITSELF = Topics(_find_nothing)


def if_changed(look: Callable[[Any], object]) -> Topics:
    """Wraps a hint: an update can help only if `look` sees a difference in the object."""

    def find(old: Any, new: Any) -> Iterable[Hashable] | None:
        return () if old is not None and new is not None and look(old) == look(new) else None

    return Topics(find)
