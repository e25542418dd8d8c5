"""Pod groups and their members: those that have a node, and those that wait for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.objects.pod import Pod
from moorage.objects.pod_group import GROUP_APIS, NO_LINKS, GroupKey, GroupLinks, PodGroup

_NOBODY: Mapping[str, Pod] = {}

Members = dict[GroupKey, dict[str, Pod]]


class KnownGroups:
    """The groups that decisions look up."""

    def __init__(self, links: GroupLinks = NO_LINKS) -> None:
        #: Which ways of naming a group count; without any, no pod has a group.
        self.links = links
        #: Whether pods may have groups at all.
        self.are_used = bool(links)
        #: The key of the pod that was asked about last, if it names its group by the field: its
        #: siblings follow, and to find the same text again is quicker than to make it.
        self._last: tuple[str, str, GroupKey | None] = "", "", None
        self._groups: dict[GroupKey, PodGroup] = {}
        self._placed: Members = {}
        self._waiting: Members = {}
        #: How many pods of groups are on each node, by its name.
        self._on_node: dict[str, int] = {}

    def __iter__(self) -> Iterator[PodGroup]:
        return iter(self._groups.values())

    def get(self, key: GroupKey) -> PodGroup | None:
        return self._groups.get(key)

    def find(self, name: str) -> PodGroup | None:
        """Returns the group of a namespace and name, whichever API describes it."""
        known = (self._groups.get((api, name)) for api in GROUP_APIS)
        return next((group for group in known if group is not None), None)

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Returns the group that a pod names, whether or not it exists."""
        if not self.are_used:
            return None
        namespace, name, key = self._last
        if key is None or pod.group_name != name or pod.namespace != namespace:
            key = self.links.key(pod)
            if pod.group_name and self.links.native:
                self._last = pod.namespace, pod.group_name, key
        return key

    def of(self, pod: Pod) -> PodGroup | None:
        """Returns the group of a pod, if it is known."""
        key = self.key_of(pod)
        return None if key is None else self._groups.get(key)

    def placed(self, key: GroupKey) -> Mapping[str, Pod]:
        """Returns the members on nodes by uid, including assumed ones."""
        return self._placed.get(key, _NOBODY)

    def waiting(self, key: GroupKey) -> Mapping[str, Pod]:
        """Returns the members by uid that have no node and are ours to place."""
        return self._waiting.get(key, _NOBODY)

    def are_on(self, node_name: str) -> bool:
        """Whether a node has pods of groups."""
        return node_name in self._on_node

    @property
    def are_placed(self) -> bool:
        """Whether any node has pods of groups."""
        return bool(self._on_node)

    def all_placed(self) -> tuple[Mapping[GroupKey, Mapping[str, Pod]], Mapping[str, int]]:
        """Returns the members of all groups that have a node, and how many are on each node."""
        return self._placed, self._on_node

    def all_waiting(self) -> Iterator[Pod]:
        """Returns the members of all groups that wait for a node."""
        return (pod for members in self._waiting.values() for pod in members.values())

    def count(self, key: GroupKey) -> int:
        """Returns how many members there are, whatever their state."""
        placed, waiting = self._placed.get(key, _NOBODY), self._waiting.get(key, _NOBODY)
        if not placed:
            return len(waiting)
        # An assumed pod waits as far as the API knows.
        return len(placed) + len(waiting) - len(placed.keys() & waiting.keys())


class PodGroups(KnownGroups):
    """The writer of the groups, for the cluster."""

    def adopt(self, other: PodGroups) -> None:
        """Takes over the counts of another."""
        self._groups, self._placed = other._groups, other._placed
        self._waiting, self._on_node = other._waiting, other._on_node

    def put(self, group: PodGroup) -> PodGroup | None:
        """Adds or updates a group; returns what it was before."""
        before = self._groups.get(group.group_key)
        self._groups[group.group_key] = self.links.rank(group)
        return before

    def drop(self, group: PodGroup) -> PodGroup | None:
        return self._groups.pop(group.group_key, None)

    def place(self, pod: Pod) -> None:
        """Notes that a pod has a node."""
        key = self.key_of(pod)
        if key is None:
            return
        known = self._placed.setdefault(key, {})
        if pod.uid not in known:
            self._on_node[pod.node_name] = self._on_node.get(pod.node_name, 0) + 1
        known[pod.uid] = pod

    def replace(self, before: Pod, pod: Pod) -> None:
        """Notes that a pod on a node has changed."""
        key = self.key_of(pod)
        known = None if key is None else self._placed.get(key)
        if known is not None and pod.uid in known and pod.node_name == before.node_name:
            known[pod.uid] = pod
        elif key is not None or self.key_of(before) is not None:
            self.displace(before)
            self.place(pod)

    def displace(self, pod: Pod) -> None:
        """Notes that a pod has no node any more."""
        if self._take(self._placed, pod):
            self._on_node[pod.node_name] -= 1
            if not self._on_node[pod.node_name]:
                del self._on_node[pod.node_name]

    def expect(self, pod: Pod) -> None:
        """Notes that a pod waits for a node."""
        key = self.key_of(pod)
        if key is not None:
            self._waiting.setdefault(key, {})[pod.uid] = pod

    def dismiss(self, pod: Pod) -> None:
        """Notes that a pod does not wait any more."""
        self._take(self._waiting, pod)

    def _take(self, members: Members, pod: Pod) -> bool:
        """Removes a pod; returns whether it was a member."""
        key = self.key_of(pod)
        known = None if key is None else members.get(key)
        if key is None or known is None or known.pop(pod.uid, None) is None:
            return False
        if not known:
            del members[key]
        return True
