"""Extended resources by type and row: the present ones, and those of a what-if."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from moorage.cluster.changes import EVERYWHERE, Change
from moorage.documents.errors import STOPPED
from moorage.objects.pod import Pod

from . import contract
from .counts import Counted, ExtendedColumns
from .informers import CustomObjects, Reports, describe

#: Is called with a row and the kinds of change there.
Note = Callable[[int, int], None]


class ExtendedTable:
    """All resources of one type. Those of an existing node have its row as well."""

    def __init__(
        self,
        resource_type: str,
        handle: contract.Handle[Any],
        change: Change,
        capacity: int,
        reports: Reports,
    ) -> None:
        self._reports = reports
        #: What the cluster has as a whole, with all placed pods counted, if a handle has set it.
        self.pool: Counted | None = None
        self.resource_type = resource_type
        self.handle = handle
        self.change = int(change)
        self.by_node: dict[str, Counted] = {}
        self.by_row: dict[int, Counted] = {}
        self.columns = ExtendedColumns(handle.columns, capacity)

    def counts(self, pod: Pod) -> bool:
        """Whether the pod can use any of it; a handle that fails counts as yes."""
        return self._ask("counts", self.handle.counts, True, pod)

    def counts_alike(self, known: Pod, seen: Pod) -> bool:
        """Whether two forms of a pod use the same; a handle that fails counts as no."""
        return self._ask("counts_alike", self.handle.counts_alike, False, known, seen)

    def _ask(self, name: str, question: Callable[..., bool], otherwise: bool, *pods: Pod) -> bool:
        try:
            answer = question(*pods)
            if answer is True or answer is False:
                return answer
            raise TypeError(f"returned {type(answer).__name__}, expected bool")
        except STOPPED as error:  # an author's code must not lose a pod
            text = f"extended resource {self.resource_type}: {name}: {describe(error)}"
            self._reports.tell((self.resource_type, name), text)
            return otherwise


class ExtendedView(ABC):
    """What decisions see of extended resources."""

    _tables: dict[str, ExtendedTable]

    def __contains__(self, resource_type: str) -> bool:
        """Whether some enabled plugin registered the type."""
        return resource_type in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def change(self, resource_type: str) -> Change:
        """Returns the kind of change for a type; none if it is not registered."""
        table = self._tables.get(resource_type)
        return Change.NONE if table is None else Change(table.change)

    def columns(self, resource_type: str) -> ExtendedColumns | None:
        """Returns the columns of a type; None if it is not registered."""
        table = self._tables.get(resource_type)
        return None if table is None else table.columns

    def resource(self, resource_type: str, row: int) -> contract.ExtendedResource | None:
        """Returns what a row has, with its pods counted."""
        table = self._tables.get(resource_type)
        counted = None if table is None else table.by_row.get(row)
        return None if counted is None else counted.resource

    def pool(self, resource_type: str) -> contract.ExtendedResource | None:
        """Returns what the cluster has as a whole, with all placed pods counted, also in a what-if.

        A filter that reads it follows pods that would come or go in what it prepares.
        """
        table = self._tables.get(resource_type)
        return None if table is None or table.pool is None else table.pool.resource

    @abstractmethod
    def layer(self) -> ExtendedLayer:
        """Returns a layer that can be changed on its own."""

    def figures(self, resource_type: str) -> list[Mapping[str, int]]:
        """Returns all figures of a type: of the pool if there is one, else of each row."""
        table = self._tables[resource_type]
        counted = list(table.by_row.values()) if table.pool is None else [table.pool]
        return [dict.fromkeys(table.columns.names, 0), *(each.figures for each in counted)]


class ExtendedResources(ExtendedView):
    """The present resources. The cluster passes every node and pod to it."""

    def __init__(
        self,
        handles: contract.HandleRegistry,
        rows: Mapping[str, int],
        pods: Sequence[Mapping[str, Pod]],
        note: Note,
        capacity: int,
    ) -> None:
        self.handles = handles
        self._rows = rows
        self._pods = pods
        self._note = note
        self.reports = Reports()
        self._tables = {
            resource_type: ExtendedTable(
                resource_type, handle, contract.kind_of_change(at), capacity, self.reports
            )
            for at, (resource_type, handle) in enumerate(handles)
        }
        #: Whether there are any types: without one, pods and nodes are none of our business.
        self.is_used = bool(self._tables)
        self.custom = CustomObjects(handles.kinds, self.reports)
        self._ages = True

    def run(self) -> None:
        """Starts every handle."""
        self.handles.close()
        for resource_type, table in self._tables.items():
            handle = table.handle
            informer = self.custom.informer(handle.kinds, handle.max_age)
            try:
                handle.run(self.cache(resource_type), informer)
            except STOPPED as error:
                problem = f"cannot be started: {describe(error)}"
                raise RuntimeError(f"extended resource {resource_type}: {problem}") from error

    def cache(self, resource_type: str) -> contract.ExtendedCache[Any]:
        """Returns the cache of a registered type."""
        return _Cache(self, resource_type)

    def tables(self) -> Iterable[ExtendedTable]:
        return self._tables.values()

    def layer(self) -> ExtendedLayer:
        return ExtendedLayer(self._tables, {})

    def adopt(self, other: ExtendedResources) -> None:
        """Takes over what another has counted. Caches and custom objects stay as they are."""
        self._tables, self._rows, self._pods = other._tables, other._rows, other._pods

    # Nodes

    def join(self, row: int, node_name: str) -> None:
        """Takes in that a row was given to a node; its pods come next."""
        for table in self._tables.values():
            counted = table.by_node.get(node_name)
            if counted is not None:
                table.by_row[row] = counted
                table.columns.put(row, counted.figures)

    def leave(self, row: int) -> None:
        """Takes in that a node has lost its pods and is about to lose its row."""
        for table in self._tables.values():
            if table.by_row.pop(row, None) is not None:
                table.columns.clear(row)

    def grow(self, capacity: int) -> None:
        for table in self._tables.values():
            table.columns.grow(capacity)

    # Pods

    def kinds(self, pod: Pod) -> int:
        """Returns the kinds of change when a pod comes or goes."""
        kinds = 0
        for table in self._tables.values():
            if table.counts(pod):
                kinds |= table.change
        return kinds

    def add_pod(self, pod: Pod, row: int) -> None:
        for table in self._tables.values():
            self._add(table, pod, row)

    def remove_pod(self, pod: Pod, row: int) -> None:
        for table in self._tables.values():
            self._remove(table, pod, row)

    def replace_pod(self, known: Pod, seen: Pod, row: int) -> None:
        """Takes in a newer form of a pod that counts for the same in everything else."""
        for table in self._tables.values():
            if not table.counts_alike(known, seen):
                self._remove(table, known, row)
                self._add(table, seen, row)
                self._note(row, table.change)

    def forget(self, pod: Pod) -> None:
        """Forgets a pod that is gone for good."""
        for resource_type in self._tables:
            self.reports.forget((resource_type, pod.uid))

    def _add(self, table: ExtendedTable, pod: Pod, row: int) -> None:
        counted, pool = table.by_row.get(row), table.pool
        if (counted is not None or pool is not None) and table.counts(pod):
            if counted is not None:
                self._count(table, counted, pod, row)
            if pool is not None:
                self._report(table, row, "add_pod", pool.add(pod))

    def _count(self, table: ExtendedTable, counted: Counted, pod: Pod, row: int) -> None:
        """Counts a pod in what its node has."""
        errors = counted.add(pod)
        table.columns.put(row, counted.figures)
        self._report(table, row, "add_pod", errors)

    def _remove(self, table: ExtendedTable, pod: Pod, row: int) -> None:
        counted = table.by_row.get(row)
        if counted is not None:
            errors = counted.remove(pod.uid)
            table.columns.put(row, counted.figures)
            self._report(table, row, "remove_pod", errors)
        if table.pool is not None:
            self._report(table, row, "remove_pod", table.pool.remove(pod.uid))

    def _report(
        self, table: ExtendedTable, row: int, what: str, errors: Mapping[str, BaseException]
    ) -> None:
        for uid, error in errors.items():
            pod = self._pods[row].get(uid)
            name = uid if pod is None else pod.key
            text = f"extended resource {table.resource_type}: pod {name}: {what}: {describe(error)}"
            self.reports.tell((table.resource_type, uid), text)

    # Resources

    def get(self, resource_type: str, node_name: str) -> contract.ExtendedResource | None:
        table = self._tables[resource_type]
        counted = table.pool if node_name == contract.POOL else table.by_node.get(node_name)
        return None if counted is None else counted.resource

    def set(self, resource_type: str, node_name: str, resource: contract.ExtendedResource) -> None:
        table = self._tables[resource_type]
        if not isinstance(node_name, str):
            raise TypeError(f"the name of a node is {type(node_name).__name__}, expected str")
        before = table.pool if node_name == contract.POOL else table.by_node.get(node_name)
        if before is not None and resource is before.resource:
            resource = before.without_pods()
        counted = Counted(resource)
        missing = [name for name in table.columns.names if name not in counted.figures]
        if missing:
            raise ValueError(f"figures() of {resource_type} lacks {', '.join(missing)}")
        if node_name == contract.POOL:
            self._set_pool(table, counted)
            return
        table.by_node[node_name] = counted
        row = self._rows.get(node_name)
        if row is not None:
            table.by_row[row] = counted
            table.columns.put(row, counted.figures)
            for pod in self._pods[row].values():
                # The pool has these pods already.
                if table.counts(pod):
                    self._count(table, counted, pod, row)
            self._note(row, table.change)

    def _set_pool(self, table: ExtendedTable, counted: Counted) -> None:
        rows = self._rows.values()
        before = table.pool
        table.pool = counted
        if before is not None:
            # The pods that counted before count now; looking at all pods would take long.
            found: Iterable[Pod] = before.pods.values()
        else:
            found = (pod for row in rows for pod in self._pods[row].values() if table.counts(pod))
        for pod in found:
            row = self._rows.get(pod.node_name)
            if row is not None:
                self._report(table, row, "add_pod", counted.add(pod))
        self._note(EVERYWHERE, table.change)

    def remove(self, resource_type: str, node_name: str) -> None:
        table = self._tables[resource_type]
        if node_name == contract.POOL:
            if table.pool is not None:
                table.pool = None
                self._note(EVERYWHERE, table.change)
            return
        row = self._rows.get(node_name)
        if table.by_node.pop(node_name, None) is not None and row is not None:
            del table.by_row[row]
            table.columns.clear(row)
            self._note(row, table.change)

    def empties(self) -> Iterator[tuple[str, str, contract.ExtendedResource]]:
        """Yields every resource as it would be without pods, with its type and node."""
        for resource_type, table in self._tables.items():
            for node_name, counted in table.by_node.items():
                yield resource_type, node_name, counted.empty()
            if table.pool is not None:
                yield resource_type, contract.POOL, table.pool.empty()

    # Ages

    @property
    def next_expiry(self) -> float:
        """Returns a time before which nothing becomes too old."""
        return self.custom.next_expiry if self._ages else inf

    def stop_ageing(self) -> None:
        """Lets nothing become too old from now on, because its source stands still."""
        self._ages = False

    def expire(self, now: float) -> None:
        """Drops what is too old by now."""
        self.custom.expire(now)


class _Cache(contract.ExtendedCache[Any]):
    """The cache of one type: a key into all of them."""

    def __init__(self, resources: ExtendedResources, resource_type: str) -> None:
        self._resources = resources
        self.resource_type = resource_type

    def get(self, node_name: str) -> contract.ExtendedResource | None:
        return self._resources.get(self.resource_type, node_name)

    def set(self, node_name: str, resource: contract.ExtendedResource) -> None:
        self._resources.set(self.resource_type, node_name, resource)

    def remove(self, node_name: str) -> None:
        self._resources.remove(self.resource_type, node_name)


class ExtendedLayer(ExtendedView):
    """The resources of a what-if: copies, made when pods are added or removed."""

    def __init__(
        self,
        tables: dict[str, ExtendedTable],
        changed: Mapping[str, tuple[ExtendedColumns, Mapping[int, Counted | None]]],
    ) -> None:
        self._tables = tables
        # What another layer has changed is copied at once: it may go on changing it.
        self._changed: dict[str, tuple[ExtendedColumns, dict[int, Counted | None]]] = {
            resource_type: (
                columns.copy(),
                {row: each and each.copy() for row, each in rows.items()},
            )
            for resource_type, (columns, rows) in changed.items()
        }

    def layer(self) -> ExtendedLayer:
        return ExtendedLayer(self._tables, self._changed)

    def columns(self, resource_type: str) -> ExtendedColumns | None:
        changed = self._changed.get(resource_type)
        return super().columns(resource_type) if changed is None else changed[0]

    def resource(self, resource_type: str, row: int) -> contract.ExtendedResource | None:
        changed = self._changed.get(resource_type)
        if changed is None or row not in changed[1]:
            return super().resource(resource_type, row)
        counted = changed[1][row]
        return None if counted is None else counted.resource

    def add_pod(self, pod: Pod, row: int) -> None:
        for table in self._tables.values():
            if table.counts(pod):
                counted = self._own(table, row)
                if counted is not None:
                    counted.add(pod)
                    self._changed[table.resource_type][0].put(row, counted.figures)

    def remove_pod(self, pod: Pod, row: int) -> None:
        for table in self._tables.values():
            if table.counts(pod):
                counted = self._own(table, row)
                if counted is not None:
                    counted.remove(pod.uid)
                    self._changed[table.resource_type][0].put(row, counted.figures)

    def _own(self, table: ExtendedTable, row: int) -> Counted | None:
        """Returns the copy for a row. A resource that cannot be copied counts as absent."""
        live = table.by_row.get(row)
        if live is None:
            return None
        if table.resource_type not in self._changed:
            self._changed[table.resource_type] = table.columns.copy(), {}
        columns, rows = self._changed[table.resource_type]
        if row not in rows:
            try:
                rows[row] = live.copy()
            except STOPPED:  # an author's code must not end a search
                rows[row] = None
                columns.clear(row)
        return rows[row]


#: By resource type and node name, the figures of the resource.
Figures = Mapping[str, Mapping[str, Mapping[str, int]]]


def extended_figures(resources: ExtendedResources) -> Figures:
    """Returns the figures of every resource with its pods counted, by type and node name.

    It includes resources whose node does not exist, which count no pods. The name of a pool is
    empty.
    """
    return {
        table.resource_type: {name: dict(counted.figures) for name, counted in _by_name(table)}
        for table in resources.tables()
    }


def _by_name(table: ExtendedTable) -> Iterator[tuple[str, Counted]]:
    if table.pool is not None:
        yield contract.POOL, table.pool
    yield from sorted(table.by_node.items())


def extended_lines(resources: ExtendedResources) -> Iterator[str]:
    """Yields the same as lines for a log, one per type and node."""
    for resource_type, nodes in extended_figures(resources).items():
        for name, figures in nodes.items():
            text = " ".join(f"{figure}={value}" for figure, value in figures.items())
            where = f"node={name}" if name else "pool"
            yield f"{resource_type} {where} {text}"
