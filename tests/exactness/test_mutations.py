"""The law can be broken, and it is seen: plugins that say less than the truth of themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from moorage.cluster import Change, Nodes, RowFacts, Scope, UndeclaredFact
from moorage.engine.classes.answers import KeptAnswer
from moorage.framework.coexist_ledgers import EXCLUSIVE_PODS, ORDINARY_PODS
from moorage.framework.plugin import Reduction, Rescore
from moorage.objects.coexist import is_exclusive
from moorage.objects.pod import Pod
from moorage.plugins.coexist_policy import CoexistPolicy
from moorage.plugins.image_locality import ImageLocality
from moorage.plugins.inter_pod_affinity.inter_pod_affinity import InterPodAffinity
from moorage.plugins.node_affinity import NodeAffinity
from moorage.plugins.node_ports import NodePorts
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.node_unschedulable import NodeUnschedulable
from moorage.plugins.taint_toleration import TaintToleration
from moorage.plugins.topology_spread.pod_topology_spread import PodTopologySpread
from moorage.plugins.volumes.node_volume_limits import NodeVolumeLimits
from tests.exactness.four_ways import Differs, configuration, run
from tests.exactness.streams import COEXISTING, Shape

# The seeds at which streams begin are chosen so that few are needed; with other streams it takes
# some more.
_MOST_STREAMS = 50

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def scope(plugin: type[Any], narrower: Scope) -> Mutation:
    return lambda patch: patch.setattr(plugin, "scope", narrower)


def reduces(plugin: type[Any], less: Reduction) -> Mutation:
    return lambda patch: patch.setattr(plugin, "reduces", less)


def signs(plugin: type[Any], less: Callable[[Pod, Nodes], Hashable]) -> Mutation:
    return lambda patch: patch.setattr(plugin, "sign", lambda self, pod, nodes: less(pod, nodes))


def signs_no_requests(patch: Patch) -> None:
    for plugin in (NodeResourcesFit, NodeResourcesBalancedAllocation):
        signs(plugin, _nothing)(patch)


def rescores_by_one_more(patch: Patch) -> None:
    plugin = NodeResourcesBalancedAllocation
    rescore = plugin.rescore

    def off_by_one(self: Any, prepared: Any, nodes: Nodes, row: Any, scores: Any) -> Rescore:
        answer = rescore(self, prepared, nodes, row, scores)
        scores[row.number] += 1
        return answer

    patch.setattr(plugin, "rescore", off_by_one)


def rechecks_kindly(plugin: type[Any]) -> Mutation:
    return lambda patch: patch.setattr(plugin, "recheck", lambda *_: Rescore.UPDATED)


def reads_of_coexistence(less: Change) -> Mutation:
    watch = CoexistPolicy.watch
    return lambda patch: patch.setattr(
        CoexistPolicy, "watch", lambda self, pod, nodes: watch(self, pod, nodes) & ~less
    )


def watches_no_terms(patch: Patch) -> None:
    watch = InterPodAffinity.watch
    patch.setattr(
        InterPodAffinity,
        "watch",
        lambda self, pod, nodes: watch(self, pod, nodes) & ~(Change.TERMS | Change.PODS),
    )


def figures_without_requests(patch: Patch) -> None:
    patch.setattr(RowFacts, "figures", property(lambda self: tuple(self.allocatable)))


def _nothing(pod: Pod, nodes: Nodes) -> Hashable:
    return None


def _no_labels(pod: Pod, nodes: Nodes) -> Hashable:
    return pod.namespace, pod.terms


def _exclusive_only(pod: Pod, nodes: Nodes) -> Hashable:
    return is_exclusive(pod)


def keeps_skipping(patch: Patch) -> None:
    patch.setattr(KeptAnswer, "_has_turned", lambda self: False)


#: Facts that plugins read, each of which they may leave out of what they declare.
READ: tuple[tuple[type[Any], Change], ...] = (
    (NodeResourcesFit, Change.REQUESTED),
    (NodeResourcesFit, Change.ALLOCATABLE),
    (NodeResourcesBalancedAllocation, Change.REQUESTED),
    (TaintToleration, Change.TAINTS),
    (NodeAffinity, Change.LABELS),
    (NodeUnschedulable, Change.UNSCHEDULABLE),
    (NodePorts, Change.PORTS),
    (ImageLocality, Change.IMAGES),
    (NodeVolumeLimits, Change.VOLUMES),
    (PodTopologySpread, Change.PODS),
)


@pytest.mark.parametrize(("plugin", "fact"), READ, ids=lambda each: getattr(each, "name", None))
def test_a_fact_that_is_not_declared_cannot_be_read(
    plugin: type[Any], fact: Change, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(plugin, "reads", plugin.reads & ~fact)

    with pytest.raises(UndeclaredFact, match=rf"{plugin.name} reads .*, a fact of .*{fact.name}"):
        run_from(0, limits_plugins=True)


@pytest.mark.parametrize("plugin", [PodTopologySpread, InterPodAffinity])
def test_what_other_rows_have_cannot_be_prepared_for_one(
    plugin: type[Any], monkeypatch: Patch
) -> None:
    scope(plugin, Scope.ROW)(monkeypatch)

    with pytest.raises(UndeclaredFact, match=rf"{plugin.name} reads "):
        run_from(0, limits_plugins=True)


MUTATIONS: dict[str, tuple[Mutation, int]] = {
    "figures tell not what is requested": (figures_without_requests, 0),
    "terms are not watched": (watches_no_terms, 0),
    "images by row": (scope(ImageLocality, Scope.ROW), 201),
    "taints need no normalising": (reduces(TaintToleration, Reduction.NOTHING), 0),
    "rescoring is off by one": (rescores_by_one_more, 1),
    "rechecking finds room": (rechecks_kindly(NodeResourcesFit), 0),
    "labels are not signed": (signs(InterPodAffinity, _no_labels), 82),
    "tolerations are not signed": (signs(TaintToleration, _nothing), 26),
    "requests are not signed": (signs_no_requests, 96),
    "images are not signed": (signs(ImageLocality, _nothing), 36),
    "what was skipped stays so": (keeps_skipping, 166),
}


@pytest.mark.parametrize(("mutate", "seed"), MUTATIONS.values(), ids=MUTATIONS)
def test_it_is_seen(mutate: Mutation, seed: int, monkeypatch: Patch) -> None:
    mutate(monkeypatch)

    with pytest.raises(Differs):
        run_from(seed)


#: The same, with exclusive pods.
AMONG_EXCLUSIVE: dict[str, tuple[Mutation, int]] = {
    "exclusive pods are not read": (reads_of_coexistence(EXCLUSIVE_PODS.change), 0),
    "ordinary pods are not read": (reads_of_coexistence(ORDINARY_PODS.change), 0),
    "policies are not signed": (signs(CoexistPolicy, _nothing), 0),
    "daemonset pods are signed like others": (signs(CoexistPolicy, _exclusive_only), 0),
    "rechecking lets everybody in": (rechecks_kindly(CoexistPolicy), 0),
}


@pytest.mark.parametrize(("mutate", "seed"), AMONG_EXCLUSIVE.values(), ids=AMONG_EXCLUSIVE)
def test_it_is_seen_among_exclusive_pods(mutate: Mutation, seed: int, monkeypatch: Patch) -> None:
    mutate(monkeypatch)

    with pytest.raises(Differs):
        run_from(seed, COEXISTING)


def run_from(seed: int, shape: Shape | None = None, *, limits_plugins: bool = False) -> None:
    using = configuration()
    for each in range(seed, seed + _MOST_STREAMS):
        run(each, using, shape, recounts=False, limits_plugins=limits_plugins)
