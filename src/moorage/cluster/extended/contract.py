"""The scheduler cache extension: what authors of extended resources write, and what they get.

A resource type exists once and is shared by all plugins and profiles. Its `Handle` follows custom
resources or nodes and sets, node by node or for the cluster as a whole, an `ExtendedResource` in
the `ExtendedCache`; pods are counted in it together with everything else that they take.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, cast

from moorage.cluster.changes import Change
from moorage.objects.custom import CustomKind, CustomObject
from moorage.objects.pod import Pod

from .informers import Informer

# Where the kinds of change begin that extended resources add, and how many there are. Types beyond
# that share one with another: their plugins are asked more often than need be, never less.
_FIRST_KIND, _KINDS = 34, 28


#: In place of a node's name: what the cluster has as a whole, in which all placed pods count.
POOL = ""


class ExtendedNode(Protocol):
    """One node as plugins see it, with its extended resources."""

    def extended(self, resource_type: str) -> ExtendedResource | None: ...


class Admission(NamedTuple):
    """How much a pod would use, and how much there is for it."""

    request: int
    available: int

    @property
    def fits(self) -> bool:
        return self.request <= self.available


class ExtendedResource(ABC):
    """What one node has of a resource, and what its pods use of it.

    It depends on the pods that were added and on nothing else, in whatever order they came.
    """

    @abstractmethod
    def add_pod(self, pod: Pod) -> None:
        """Counts a pod on the node. If it raises, the pod is left out and that is reported."""

    @abstractmethod
    def remove_pod(self, pod: Pod) -> None:
        """Undoes what `add_pod` did for a pod that is gone."""

    @abstractmethod
    def admit_pod(self, pod: Pod) -> Admission:
        """Returns what a pod requests and what is left for it. Changes nothing."""

    def copy(self) -> Self:
        """Returns a copy that can be changed on its own."""
        return deepcopy(self)

    def figures(self) -> Mapping[str, int]:
        """Returns all integers that it holds, for columns, for people and for comparison."""
        held = vars(self).items()
        return {name: value for name, value in held if type(value) is int}


R = TypeVar("R", bound=ExtendedResource)


class ExtendedCache(ABC, Generic[R]):
    """The resources of one type, by node name or POOL. A node need not exist yet."""

    resource_type: str

    @abstractmethod
    def get(self, node_name: str) -> R | None:
        """Returns the resource with its pods counted; read it, do not keep it."""

    @abstractmethod
    def set(self, node_name: str, resource: R) -> None:
        """Sets what a node has: a new resource without pods, or the changed one that `get` gave.

        The pods of the node are counted in it before anything reads it.
        """

    @abstractmethod
    def remove(self, node_name: str) -> None:
        """Removes the resource from the node."""


class Handle(ABC, Generic[R]):
    """Keeps the resources of a type up to date. `R` is what it sets for a node."""

    #: The custom resource that tells what nodes have, if there is one.
    kind: CustomKind | None = None
    #: After so many seconds without news an object no longer counts. None is never.
    max_age: float | None = None
    #: The annotations that say what a pod uses: pods without any of them are not counted.
    #: None counts every pod.
    annotations: tuple[str, ...] | None = None
    #: The figures that are kept as columns.
    columns: ClassVar[tuple[str, ...]] = ()

    cache: ExtendedCache[R]

    @property
    def kinds(self) -> tuple[CustomKind, ...]:
        """Returns all custom resources that it follows; override it to follow several."""
        return () if self.kind is None else (self.kind,)

    def run(self, cache: ExtendedCache[R], informer: Informer) -> None:
        """Called once, before the first event: listen to the informer here."""
        self.cache = cache

    def get(self, node: ExtendedNode | str) -> R | None:
        """Returns the resource of a node: for a name the present one, for a view the one there.

        Plugins pass the view that they were given, which may be one of a what-if.
        """
        if isinstance(node, str):
            return self.cache.get(node)
        return cast(R | None, node.extended(self.cache.resource_type))

    def counts(self, pod: Pod) -> bool:
        """Whether a pod can use any of it."""
        if self.annotations is None:
            return True
        held = pod.annotations
        return any(name in held for name in self.annotations)

    def counts_alike(self, known: Pod, seen: Pod) -> bool:
        """Whether a newer form of a pod, with the same template and labels, uses the same."""
        if self.annotations is None:
            return known.annotations == seen.annotations
        old, new = known.annotations, seen.annotations
        return all(old.get(name) == new.get(name) for name in self.annotations)


H = TypeVar("H", bound=Handle[Any])


class HandleRegistry:
    """The handles by resource type. Plugins register theirs while they are made."""

    def __init__(self) -> None:
        self._handles: dict[str, Handle[Any]] = {}
        self._readers: dict[str, list[str]] = {}
        self._is_closed = False

    def register(self, resource_type: str, make: Callable[[], H]) -> H:
        """Returns the handle of a type: the existing one, else a new one.

        A plugin that registers a type in two ways checks which of them it got.
        """
        handle = self._handles.get(resource_type)
        if handle is None:
            if self._is_closed:
                raise RuntimeError(f"extended resource {resource_type}: registered too late")
            handle = self._handles[resource_type] = make()
        return cast(H, handle)

    def expect(self, resource_type: str, reader: str) -> None:
        """Notes that a plugin reads a resource that another one registers, now or later."""
        self._readers.setdefault(resource_type, []).append(reader)

    def close(self) -> None:
        """Refuses further handles, because all plugins are made."""
        self._is_closed = True

    def __iter__(self) -> Iterator[tuple[str, Handle[Any]]]:
        return iter(self._handles.items())

    @property
    def unowned(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """Returns types that no plugin registers, and the plugins that would read them."""
        for resource_type, readers in self._readers.items():
            if resource_type not in self._handles:
                yield resource_type, tuple(dict.fromkeys(readers))

    @property
    def kinds(self) -> tuple[CustomKind, ...]:
        """Returns the custom resources to watch for the handles, each once."""
        found: dict[CustomKind, dict[tuple[str, str] | None, CustomKind]] = {}
        for handle in self._handles.values():
            for kind in handle.kinds:
                found.setdefault(kind.whole, {}).setdefault(kind.only, kind)
        return tuple(
            kind
            for parts in found.values()
            # Who follows all objects of a kind follows single ones as well.
            for kind in ((parts[None],) if None in parts else parts.values())
        )


def kind_of_change(number: int) -> Change:
    """Returns the kind of change for the resource type that was registered at a position."""
    return Change(1 << (_FIRST_KIND + number % _KINDS))


class ObjectPerNode(Handle[R]):
    """Sets what each object says about its node. Authors define how an object is read.

    Objects may come before or after their node and its pods, move to another node, and be deleted.
    An object that cannot be read changes nothing: the one before it still counts. One that is too
    old counts as deleted, unless `read_old` says otherwise.
    """

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._said: dict[str, dict[str, R]] = {}

    @abstractmethod
    def read(self, item: CustomObject) -> tuple[str, R]:
        """Returns the name of the node, and what it has; raises DecodeError naming the field."""

    def read_old(self, item: CustomObject) -> tuple[str, R] | None:
        """Returns what counts for the node of an object that is too old; None for nothing."""
        return None

    def run(self, cache: ExtendedCache[R], informer: Informer) -> None:
        super().run(cache, informer)
        informer.listen(self._applied, self._removed, self._expired)

    def _applied(self, item: CustomObject) -> None:
        self._take(item, *self.read(item))

    def _expired(self, item: CustomObject) -> None:
        left = self.read_old(item)
        if left is None:
            self._removed(item)
        else:
            self._take(item, *left)

    def _take(self, item: CustomObject, node_name: str, resource: R) -> None:
        said = {**self._said.get(node_name, {}), item.key: resource}
        # Before anything is noted, since what was read may still be refused.
        self._choose(node_name, said)
        if self._node_of.get(item.key, node_name) != node_name:
            self._removed(item)
        self._node_of[item.key] = node_name
        self._said[node_name] = said
        if len(said) > 1:
            problem = f"more than one {item.kind} describes node {node_name}"
            raise ValueError(f"{problem}: {min(said)} counts")

    def _removed(self, item: CustomObject) -> None:
        node_name = self._node_of.pop(item.key, None)
        if node_name is not None:
            said = self._said.pop(node_name)
            del said[item.key]
            if said:
                self._said[node_name] = said
            self._choose(node_name, said)

    def _choose(self, node_name: str, said: Mapping[str, R]) -> None:
        """Sets what counts for a node: of several objects the first by name."""
        if said:
            self.cache.set(node_name, said[min(said)])
        else:
            self.cache.remove(node_name)
