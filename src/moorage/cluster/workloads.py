"""Namespaces, and the services and controllers that say which pods belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from moorage.objects.pod import Pod
from moorage.objects.selector import EVERYTHING, Labels, Selector
from moorage.objects.workload import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    SelectingObject,
    Service,
    StatefulSet,
    owned_kind,
)

from .derived import Recent
from .label_index import LabelKeys, SelectorIndex

_NO_LABELS: Labels = {}

# For so many selectors of namespaces it is known which they select.
_MOST_SELECTORS = 1_024


class KnownWorkloads:
    """The objects around pods that decisions look up."""

    def __init__(self, label_keys: LabelKeys | None = None) -> None:
        self._label_keys = label_keys or LabelKeys()
        #: Grows with every change of a service or controller.
        self.version = 0
        #: Who was asked about last, at which version, and the answer: several ask about one pod.
        self._last: tuple[Pod, int, Selector | None] | None = None
        self._namespaces: dict[str, Namespace] = {}
        self._services: dict[str, dict[str, Service]] = {}
        self._serving: dict[str, SelectorIndex[Service]] = {}
        self._matching: Recent[Selector, frozenset[str]] = Recent(_MOST_SELECTORS)
        self._selecting: dict[type[SelectingObject], dict[str, SelectingObject]] = {
            ReplicationController: {},
            ReplicaSet: {},
            StatefulSet: {},
            PodDisruptionBudget: {},
        }

    def namespace_labels(self, name: str) -> Labels:
        known = self._namespaces.get(name)
        return _NO_LABELS if known is None else known.labels

    def namespaces_matching(self, selector: Selector) -> frozenset[str]:
        found = self._matching.get(selector)
        if found is None:
            found = frozenset(
                name for name, known in self._namespaces.items() if selector.matches(known.labels)
            )
            self._matching.put(selector, found)
        return found

    def siblings(self, pod: Pod) -> Selector | None:
        """Returns what selects the pods that belong with this one: its services and its controller.

        None when neither says anything.
        """
        last = self._last
        if last is None or last[0] is not pod or last[1] != self.version:
            last = self._last = pod, self.version, self._find_siblings(pod)
        return last[2]

    def _find_siblings(self, pod: Pod) -> Selector | None:
        merged = EVERYTHING
        services = self._serving.get(pod.namespace)
        for service in services.candidates(pod.labels) if services else ():
            if service.selector is not None and service.selector.matches(pod.labels):
                merged &= service.selector
        owner = self._controller(pod)
        if owner is not None and owner.selector is not None:
            if isinstance(owner, ReplicationController):
                # Its selector is a plain map, laid over those of the services.
                merged = merged.without(owner.selector.keys)
            merged &= owner.selector
        return merged or None

    @property
    def budgets(self) -> Iterable[PodDisruptionBudget]:
        """The disruption budgets, in the order in which they became known."""
        budgets = self._selecting[PodDisruptionBudget].values()
        return (each for each in budgets if isinstance(each, PodDisruptionBudget))

    def find(self, item: Namespace | SelectingObject) -> Namespace | SelectingObject | None:
        """Returns what is known under the same name as the given object."""
        if isinstance(item, Namespace):
            return self._namespaces.get(item.name)
        if isinstance(item, Service):
            return self._services.get(item.namespace, {}).get(item.name)
        return self._selecting[type(item)].get(item.key)

    def __iter__(self) -> Iterator[Namespace | SelectingObject]:
        yield from self._namespaces.values()
        for services in self._services.values():
            yield from services.values()
        for controllers in self._selecting.values():
            yield from controllers.values()

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        return self._namespaces

    def _controller(self, pod: Pod) -> SelectingObject | None:
        kind = None if pod.owner is None else owned_kind(pod.owner)
        if pod.owner is None or kind is None:
            return None
        return self._selecting[kind].get(f"{pod.namespace}/{pod.owner.name}")


class Workloads(KnownWorkloads):
    """The same for the cluster, which writes it."""

    def sweep(self) -> None:
        """Drops the selectors of namespaces that nobody asked for lately."""
        self._matching.sweep()

    def put(self, item: Namespace | SelectingObject) -> None:
        if isinstance(item, Namespace):
            self._namespaces[item.name] = item
            self._matching.clear()
        elif isinstance(item, Service):
            self._drop_service(item)
            self._services.setdefault(item.namespace, {})[item.name] = item
            self._label_keys.add(item.selector)
            if item.selector is not None:
                serving = self._serving.setdefault(item.namespace, SelectorIndex())
                serving.add(item.selector, item)
        else:
            self._drop_selecting(item)
            self._selecting[type(item)][item.key] = item
            if not isinstance(item, PodDisruptionBudget):
                self._label_keys.add(item.selector)

    def drop(self, item: Namespace | SelectingObject) -> None:
        if isinstance(item, Namespace):
            self._namespaces.pop(item.name, None)
            self._matching.clear()
        elif isinstance(item, Service):
            self._drop_service(item)
        else:
            self._drop_selecting(item)

    def _drop_service(self, item: Service) -> None:
        self.version += 1
        known = self._services.get(item.namespace, {}).pop(item.name, None)
        if known is not None and known.selector is not None:
            self._serving[known.namespace].discard(known.selector, known)
            self._label_keys.discard(known.selector)

    def _drop_selecting(self, item: SelectingObject) -> None:
        known = self._selecting[type(item)].pop(item.key, None)
        # What a budget selects matters only to who must go.
        if not isinstance(item, PodDisruptionBudget):
            self.version += 1
            self._label_keys.discard(None if known is None else known.selector)
