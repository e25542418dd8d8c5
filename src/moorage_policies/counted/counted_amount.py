"""A counted amount as an extended resource, and the handles that learn its capacity."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from moorage.plugin import (
    POOL,
    Admission,
    CustomKind,
    CustomObject,
    DecodeError,
    ExtendedCache,
    ExtendedResource,
    Handle,
    Informer,
    Node,
    ObjectPerNode,
    Pod,
    describe,
)
from moorage_policies.amounts import MOST_COUNTED, read_amount

from .counted_args import (
    OWN_NAME,
    ConfigMapCapacity,
    CountedPool,
    CountedResource,
    ObjectCapacity,
)

CAPACITY, USED, OLD = "capacity", "used", "old"


@dataclass(frozen=True, slots=True)
class PodUse:
    """Where pods say how much they use: in an annotation, or in their containers' requests."""

    annotation: str
    resource: str

    def amount(self, pod: Pod) -> int:
        """Returns what a pod asks for, 0 if it says nothing.

        Raises DecodeError naming the annotation.
        """
        if self.annotation:
            text = pod.annotations.get(self.annotation)
            return 0 if text is None else _read_annotation(self.annotation, text)
        requests = pod.spec.held.requests
        return next((min(n, MOST_COUNTED) for name, n in requests if name == self.resource), 0)

    def is_said(self, pod: Pod) -> bool:
        """Whether a pod says anything, even if it cannot be read."""
        return self.annotation in pod.annotations if self.annotation else bool(self.amount(pod))


@lru_cache(maxsize=4096)
def _read_annotation(name: str, text: str) -> int:
    return read_amount(f"annotation {name}", text)


@dataclass(slots=True)
class CountedAmount(ExtendedResource):
    """How much there is, and how much pods use of it."""

    use: PodUse
    capacity: int
    used: int = 0
    #: 1 if the amount is too old to count.
    old: int = 0

    def add_pod(self, pod: Pod) -> None:
        self.used += self.use.amount(pod)

    def remove_pod(self, pod: Pod) -> None:
        self.used -= self.use.amount(pod)

    def admit_pod(self, pod: Pod) -> Admission:
        return Admission(self.use.amount(pod), 0 if self.old else self.capacity - self.used)

    def copy(self) -> CountedAmount:
        return replace(self)

    def figures(self) -> Mapping[str, int]:
        return {CAPACITY: self.capacity, USED: self.used, OLD: self.old}


class CountedHandle(Handle[CountedAmount]):
    """The common part of all handles of counted resources: which pods count."""

    columns = (CAPACITY, USED, OLD)

    def __init__(self, settings: CountedResource | CountedPool) -> None:
        self.settings = settings
        self.use = PodUse(settings.pod_annotation, settings.pod_resource)

    def counts(self, pod: Pod) -> bool:
        return self.use.is_said(pod)

    def counts_alike(self, known: Pod, seen: Pod) -> bool:
        # Pods whose requests differ are counted anew in any case.
        key = self.use.annotation
        return not key or known.annotations.get(key) == seen.annotations.get(key)

    def _make(self, amount: int, old: bool = False) -> CountedAmount:
        return CountedAmount(self.use, amount, old=int(old))


class ObjectAmounts(CountedHandle, ObjectPerNode[CountedAmount]):
    """Follows custom objects, one per node."""

    def __init__(self, settings: CountedResource, source: ObjectCapacity) -> None:
        CountedHandle.__init__(self, settings)
        ObjectPerNode.__init__(self)
        self._source = source
        self.kind, self.max_age = source.custom_kind, source.max_seconds

    def read(self, item: CustomObject) -> tuple[str, CountedAmount]:
        return self._node(item), self._make(_amount_of(item, self._source))

    def read_old(self, item: CustomObject) -> tuple[str, CountedAmount]:
        return self._node(item), self._make(0, old=True)

    def _node(self, item: CustomObject) -> str:
        path = self._source.node
        name = item.name if path == OWN_NAME else _find(item, path)
        if not isinstance(name, str) or not name:
            missing = name in (None, "")
            wrong = "is required" if missing else f"must be a string, got {describe(name)}"
            raise DecodeError(wrong, path)
        return name


class NodeAmounts(CountedHandle):
    """Follows a label or an annotation of nodes."""

    def run(self, cache: ExtendedCache[CountedAmount], informer: Informer) -> None:
        super().run(cache, informer)
        self._said: dict[str, str] = {}
        informer.listen_to_nodes(self._applied, self._removed)

    def _applied(self, node: Node) -> None:
        label, annotation = self._keys
        text = node.labels.get(label) if label else node.annotations.get(annotation)
        if text == self._said.get(node.name):
            return
        if text is None:
            self._removed(node)
            return
        field = f"label {label}" if label else f"annotation {annotation}"
        self.cache.set(node.name, self._make(read_amount(field, text)))
        self._said[node.name] = text

    def _removed(self, node: Node) -> None:
        if self._said.pop(node.name, None) is not None:
            self.cache.remove(node.name)

    @property
    def _keys(self) -> tuple[str, str]:
        capacity = self.settings.capacity
        return capacity.node_label, capacity.node_annotation


class _OneObject(CountedHandle):
    """Follows a single object."""

    def __init__(self, settings: CountedResource | CountedPool, kind: CustomKind) -> None:
        super().__init__(settings)
        self.kind = kind
        assert kind.only is not None
        namespace, name = kind.only
        self._key = f"{namespace}/{name}" if namespace else name

    def run(self, cache: ExtendedCache[CountedAmount], informer: Informer) -> None:
        super().run(cache, informer)
        informer.listen(
            self._if_ours(self._applied), self._if_ours(self._removed), self._if_ours(self._expired)
        )

    def _if_ours(self, listener: Any) -> Any:
        # Another handle may have asked for all objects of the kind.
        return lambda item: listener(item) if item.key == self._key else None

    @abstractmethod
    def _applied(self, item: CustomObject) -> None: ...

    @abstractmethod
    def _removed(self, item: CustomObject) -> None: ...

    def _expired(self, item: CustomObject) -> None:
        """Does nothing: only objects with an age become too old."""


class ConfigMapAmounts(_OneObject):
    """Follows a ConfigMap with an amount per node."""

    def __init__(self, settings: CountedResource, source: ConfigMapCapacity) -> None:
        super().__init__(settings, source.custom_kind)
        self._said: dict[str, str] = {}

    def _applied(self, item: CustomObject) -> None:
        data = item.mapping("data")
        wrong: list[DecodeError] = []
        for name in self._said.keys() - data.keys():
            self._drop(name)
        for name, text in data.items():
            if not name or self._said.get(name) == text:
                continue
            try:
                self.cache.set(name, self._make(read_amount(f"data.{name}", text)))
                self._said[name] = text
            except DecodeError as error:
                # What was known of the node before stays.
                wrong.append(error)
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise ValueError(f"{wrong[0]}{more}")

    def _removed(self, item: CustomObject) -> None:
        for name in list(self._said):
            self._drop(name)

    def _drop(self, name: str) -> None:
        del self._said[name]
        self.cache.remove(name)


class PoolAmount(_OneObject):
    """Follows the object or the key of a ConfigMap that says what the cluster has."""

    def __init__(self, settings: CountedPool, source: ObjectCapacity | ConfigMapCapacity) -> None:
        super().__init__(settings, source.custom_kind)
        self._source = source
        if isinstance(source, ObjectCapacity):
            self.max_age = source.max_seconds

    def _applied(self, item: CustomObject) -> None:
        if isinstance(self._source, ObjectCapacity):
            amount = _amount_of(item, self._source)
        else:
            key = self._source.key
            found = item.mapping("data").get(key)
            if found is None:
                raise DecodeError("is required", f"data.{key}")
            amount = read_amount(f"data.{key}", found)
        self.cache.set(POOL, self._make(amount))

    def _removed(self, item: CustomObject) -> None:
        self.cache.remove(POOL)

    def _expired(self, item: CustomObject) -> None:
        self.cache.set(POOL, self._make(0, old=True))


def make_node_handle(settings: CountedResource) -> CountedHandle:
    """Makes the handle that learns what nodes have."""
    capacity = settings.capacity
    if capacity.object is not None:
        return ObjectAmounts(settings, capacity.object)
    if capacity.config_map is not None:
        return ConfigMapAmounts(settings, capacity.config_map)
    return NodeAmounts(settings)


def make_pool_handle(settings: CountedPool) -> CountedHandle:
    """Makes the handle that learns what the cluster has."""
    source = settings.capacity.object or settings.capacity.config_map
    assert source is not None, "the configuration was checked"
    return PoolAmount(settings, source)


def _amount_of(item: CustomObject, source: ObjectCapacity) -> int:
    found = _find(item, source.amount)
    if found is None:
        raise DecodeError("is required", source.amount)
    return read_amount(source.amount, found)


def _find(item: CustomObject, path: str) -> Any:
    *parents, last = path.split(".")
    return item.mapping(*parents).get(last)
