"""Whatever is done to a cluster, its columns follow from the objects, and a plain model agrees."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moorage.cluster import Change, Cluster, PodMatch, check
from moorage.cluster.changes import EVERYWHERE
from moorage.cluster.host_ports import HOST_PORTS
from moorage.framework.coexist_ledgers import ALL, EXCLUSIVE_PODS, ORDINARY_PODS
from moorage.objects.coexist import is_exclusive
from moorage.objects.daemons import is_ordinary
from moorage.objects.node import ZONE, Node
from moorage.objects.pod import Pod
from moorage.objects.selector import EVERYTHING, equality
from moorage.objects.workload import Namespace, SelectingObject
from tests.strategies import NAMES, node_labels, nodes, pod_labels, pods, taints, workloads

UIDS = st.sampled_from([f"p{at}" for at in range(8)])
#: One node more than there can be.
PLACES = st.sampled_from([*NAMES, "nowhere"])
KEYS = st.sampled_from([ZONE, "disk"])
MATCHES = st.sampled_from(
    [
        PodMatch(((None, equality({"app": "web"})),)),
        PodMatch(((frozenset({"shop"}), EVERYTHING),)),
        PodMatch(((None, equality({"tier": "x"})),), skip_terminating=True),
    ]
)

#: What a row says, and which kind of change tells that it says something else now.
Said = dict[Change, Any]


class ClusterMachine(RuleBasedStateMachine):
    """Does everything that can be done to a cluster, to the cluster and to dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        for ledger in (EXCLUSIVE_PODS, ORDINARY_PODS):
            self.cluster.nodes.ledger(ledger)
            self.cluster.nodes.nominated(ledger)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.assumed: set[str] = set()
        self.nominated: dict[str, tuple[Pod, str]] = {}
        self.generation = 0
        self.said: dict[int, Said] = {}

    # Nodes

    @rule(new=nodes())
    def put_node(self, new: Node) -> None:
        assert self.cluster.put_node(new) == self.nodes.get(new.name)
        self.nodes[new.name] = new

    def change_node(self, data: st.DataObject, **changes: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        changed = msgspec.structs.replace(self.nodes[name], **changes)
        self.cluster.put_node(changed)
        self.nodes[name] = changed

    @rule(data=st.data(), labels=node_labels)
    @precondition(lambda self: self.nodes)
    def relabel(self, data: st.DataObject, labels: dict[str, str]) -> None:
        self.change_node(data, labels=labels)

    @rule(data=st.data(), other=nodes())
    @precondition(lambda self: self.nodes)
    def change_one_thing(self, data: st.DataObject, other: Node) -> None:
        fields = ["taints", "unschedulable", "allocatable", "images", "declared_features"]
        field = data.draw(st.sampled_from(fields))
        self.change_node(data, **{field: getattr(other, field)})

    @rule(name=PLACES)
    def remove_node(self, name: str) -> None:
        assert self.cluster.remove_node(name) == self.nodes.pop(name, None)

    # Pods

    @rule(name=UIDS, on=PLACES, data=st.data())
    def put_pod(self, name: str, on: str, data: st.DataObject) -> None:
        new = data.draw(pods(name, on, terminating=True))
        new = msgspec.structs.replace(new, uid=name)
        assert self.cluster.put_pod(new) == self.pods.get(name)
        self.pods[name] = new
        self.assumed.discard(name)

    @rule(name=UIDS, on=PLACES, data=st.data())
    def assume(self, name: str, on: str, data: st.DataObject) -> None:
        waiting = msgspec.structs.replace(data.draw(pods(name)), uid=name)
        if on in self.nodes and name not in self.pods:
            self.pods[name] = self.cluster.assume(waiting, on)
            self.assumed.add(name)
            assert self.pods[name] == waiting.on(on)
            return
        try:
            self.cluster.assume(waiting, on)
        except (LookupError, ValueError):
            return
        raise AssertionError("a pod was assumed that cannot be")

    @rule(name=UIDS)
    def forget(self, name: str) -> None:
        gone = self.cluster.forget(name)
        assert (gone is not None) == (name in self.assumed)
        if gone is not None:
            assert gone == self.pods.pop(name)
            self.assumed.discard(name)

    @rule(data=st.data(), on=st.none() | PLACES)
    @precondition(lambda self: self.assumed)
    def bind(self, data: st.DataObject, on: str | None) -> None:
        """Confirms an assumed pod where it is, or finds it bound elsewhere."""
        name = data.draw(st.sampled_from(sorted(self.assumed)))
        seen = self.pods[name].on(on or self.pods[name].node_name)
        self.cluster.put_pod(seen)
        self.pods[name] = seen
        self.assumed.discard(name)

    @rule(data=st.data(), labels=pod_labels, other=pods(), terminating=st.booleans())
    @precondition(lambda self: self.pods)
    def change_pod(
        self, data: st.DataObject, labels: dict[str, str], other: Pod, terminating: bool
    ) -> None:
        name = data.draw(st.sampled_from(sorted(self.pods)))
        changed = msgspec.structs.replace(
            self.pods[name],
            labels=labels,
            annotations=other.annotations,
            owner=other.owner,
            terminating=terminating,
            resource_version="new",
        )
        self.cluster.put_pod(changed)
        self.pods[name] = changed
        self.assumed.discard(name)

    @rule(name=UIDS)
    def remove_pod(self, name: str) -> None:
        assert self.cluster.remove_pod(name) == self.pods.pop(name, None)
        self.assumed.discard(name)

    @rule(name=UIDS, on=st.just("") | PLACES, data=st.data())
    def nominate(self, name: str, on: str, data: st.DataObject) -> None:
        waiting = msgspec.structs.replace(data.draw(pods(name)), uid=name)
        self.cluster.nominate(waiting, on)
        self.nominated.pop(name, None)
        if on:
            self.nominated[name] = waiting, on

    # What surrounds them

    @rule(item=workloads, stays=st.booleans())
    def put_workload(self, item: Namespace | SelectingObject, stays: bool) -> None:
        if stays:
            self.cluster.put_workload(item)
            assert self.cluster.nodes.workloads.find(item) == item
        else:
            self.cluster.remove_workload(item)
            assert self.cluster.nodes.workloads.find(item) is None

    # Asking creates what is kept from then on

    @rule(key=KEYS)
    def ask_for_labels(self, key: str) -> None:
        self.cluster.nodes.label(key)

    @rule(match=MATCHES)
    def ask_for_a_tally(self, match: PodMatch) -> None:
        self.cluster.nodes.tally(match)

    @rule(match=MATCHES, key=KEYS)
    def ask_for_domains(self, match: PodMatch, key: str) -> None:
        self.cluster.nodes.tally(match).in_domains(self.cluster.nodes.label(key))

    @rule()
    def ask_for_lesser_pods(self) -> None:
        self.cluster.nodes.lesser_pods(2, self.cluster.nodes.rows)

    @rule(data=st.data())
    def ask_for_images(self, data: st.DataObject) -> None:
        self.cluster.nodes.image(data.draw(st.sampled_from(["app:latest", "db:v1"])))

    @rule(taint=taints)
    def ask_for_taints(self, taint: Any) -> None:
        nodes = self.cluster.nodes
        judged = nodes.taints.judge(len)
        for row in nodes.rows.tolist():
            assert judged[nodes.taint_sets[row]] == len(nodes.node(row).taints)

    # Invariants

    @invariant()
    def everything_follows_from_the_objects(self) -> None:
        check(self.cluster)

    @invariant()
    def nodes_agree(self) -> None:
        nodes = self.cluster.nodes
        found = {nodes.name(row): nodes.node(row) for row in nodes.rows.tolist()}
        assert found == self.nodes
        assert len(nodes) == len(self.nodes)
        assert all(nodes.row(name) is not None for name in self.nodes)

    @invariant()
    def pods_agree(self) -> None:
        assert self.cluster.pods == self.pods
        assert {name for name in self.pods if self.cluster.is_assumed(name)} == self.assumed
        assert self.cluster.assumed_count == len(self.assumed)

    @invariant()
    def sums_agree(self) -> None:
        nodes = self.cluster.nodes
        for name in self.nodes:
            row = nodes.row(name)
            here = [pod for pod in self.pods.values() if pod.node_name == name]
            sums: Counter[str] = Counter(pods=len(here))
            for pod in here:
                sums.update(dict(pod.held.requests))
            found = {key: int(nodes.requested[at, row]) for key, at in nodes.resources.items()}
            assert {key: value for key, value in found.items() if value} == {
                key: value for key, value in sums.items() if value and key in found
            }

    @invariant()
    def exclusive_and_ordinary_pods_agree(self) -> None:
        nodes = self.cluster.nodes
        for name in self.nodes:
            row = nodes.row(name)
            here = [pod for pod in self.pods.values() if pod.node_name == name]
            exclusive, ordinary = nodes.ledger(EXCLUSIVE_PODS), nodes.ledger(ORDINARY_PODS)
            assert exclusive.column(ALL)[row] == sum(is_exclusive(pod) for pod in here)
            assert ordinary.column(ALL)[row] == sum(is_ordinary(pod) for pod in here)

    @invariant()
    def nominations_agree(self) -> None:
        nodes = self.cluster.nodes
        for name, (waiting, on) in self.nominated.items():
            assert nodes.nominations.node_of(waiting) == on
            assert nodes.nominations.on(on)[name] == waiting
        for priority in range(4):
            weight = nodes._state.nominations.weight(priority, nodes._state.columns)
            here = Counter(
                on
                for pod, on in self.nominated.values()
                if on in self.nodes
                if pod.priority >= priority
            )
            counts = np.zeros(len(nodes.alive), np.int64)
            if weight is not None:
                counts = weight.pods()
            found = {nodes.name(row): int(counts[row]) for row in nodes.rows if counts[row]}
            assert found == dict(here)

    @invariant()
    def every_change_is_in_the_log(self) -> None:
        said = {row: self.row_says(row) for row in range(len(self.cluster._state.nodes))}
        noted = self.cluster.changes.since(self.generation)
        assert noted is not None
        for row, now in said.items():
            before = self.said.get(row, {})
            changed = [kind for kind, value in now.items() if before.get(kind) != value]
            for kind in changed:
                kinds = noted.get(row, Change.NONE) | noted.get(EVERYWHERE, Change.NONE)
                assert kinds & kind, f"row {row} hides a change of {kind!r}"
        self.said, self.generation = said, self.cluster.changes.generation

    def row_says(self, row: int) -> Said:
        nodes, state = self.cluster.nodes, self.cluster._state
        if not nodes.alive[row]:
            return {}
        node = nodes.node(row)
        pods = nodes.pods(row).values()
        kept = nodes.nominations.on(node.name).values()
        return {
            Change.MEMBERSHIP: node.name,
            Change.ALLOCATABLE: (
                self.column(nodes.allocatable, row),
                nodes.resource_names.values[nodes.resource_sets[row]],
            ),
            Change.REQUESTED: self.column(nodes.requested, row),
            Change.UNSCHEDULABLE: bool(nodes.unschedulable[row]),
            Change.TAINTS: nodes.taints.values[nodes.taint_sets[row]],
            Change.FEATURES: nodes.features.values[nodes.feature_sets[row]],
            Change.LABELS: dict(node.labels),
            Change.IMAGES: {name for name, image in state.images if row in image.rows},
            Change.PORTS: {
                key: rows[row]
                for key, rows in nodes.ledger(HOST_PORTS).by_key().items()
                if row in rows
            },
            Change.PODS: {(p.uid, p.terminating, *sorted(p.labels.items())) for p in pods},
            EXCLUSIVE_PODS.change: {pod.uid for pod in (*pods, *kept) if is_exclusive(pod)},
            ORDINARY_PODS.change: {pod.uid for pod in (*pods, *kept) if is_ordinary(pod)},
            Change.NOMINATED: {
                uid: pod.spec for uid, pod in nodes.nominations.on(node.name).items()
            },
        }

    def column(self, columns: Any, row: int) -> dict[str, int]:
        resources = self.cluster.nodes.resources
        return {key: int(columns[at, row]) for key, at in resources.items() if columns[at, row]}


TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(max_examples=30, stateful_step_count=50)
