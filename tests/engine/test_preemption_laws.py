"""Laws of preemption, over clusters in which room and coexist policies decide."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import given, settings

from moorage.cluster import check
from moorage.engine import Engine
from moorage.engine.cycle import decide
from moorage.framework.attempt import Failed
from moorage.framework.nominated import sees_only_counts
from moorage.framework.plugin import Remedy
from moorage.framework.profile import Profile
from moorage.objects.coexist import DAEMONSET_AND_STATIC_PODS
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.storage import StorageObject
from moorage.objects.workload import PodDisruptionBudget
from moorage.plugins.preemption.default_preemption import DefaultPreemption
from tests.builders import node, pod
from tests.coexisting import DAEMON
from tests.engine.driver import engine
from tests.storage_builders import csi_node, pv, pvc, storage_class
from tests.strategies import columns_of

BUDGETS = st.lists(
    st.builds(
        lambda app, allowed: PodDisruptionBudget(
            namespace="default",
            name=f"{app}-{allowed}",
            selector=equality({"app": app}),
            disruptions_allowed=allowed,
        ),
        st.sampled_from(["web", "db"]),
        st.integers(0, 2),
    ),
    max_size=2,
)

POLICIES = st.sampled_from([{}, {}, {}, {"coexistPolicy": DAEMONSET_AND_STATIC_PODS}])


CLAIMS = ("a", "b", "c", "d")

# What the volumes of pods say: nothing, or some claims.
Fields = st.SearchStrategy[dict[str, Any]]
NO_VOLUMES: Fields = st.just({})
VOLUMES: Fields = st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2, unique=True).map(
    lambda names: {
        "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    }
)


@st.composite
def running(draw: st.DrawFn, name: str, on: str, volumes: Fields = NO_VOLUMES) -> Pod:
    start = draw(st.none() | st.integers(0, 59))
    return pod(
        name,
        node=on,
        labels=draw(st.sampled_from([{}, {"app": "web"}, {"app": "db"}])),
        spec={"priority": draw(st.integers(0, 4)), **draw(POLICIES), **draw(volumes)},
        metadata=draw(st.sampled_from([{}, {}, {}, DAEMON])),
        status={} if start is None else {"startTime": f"2024-01-01T00:00:{start:02}Z"},
        cpu=draw(st.integers(0, 3)),
        memory=draw(st.integers(0, 3)),
    )


@dataclass
class Case:
    """An engine with full nodes, and a pod that fits nowhere."""

    engine: Engine
    asks: Pod
    failed: Failed

    @property
    def plugin(self) -> DefaultPreemption:
        (found,) = (
            each for each in self.profile.post_filter if isinstance(each, DefaultPreemption)
        )
        return found

    @property
    def profile(self) -> Profile:
        return self.engine.profiles["default-scheduler"]

    def remedy(self) -> Remedy | None:
        nodes = self.engine.cluster.nodes
        found = self.plugin.post_filter(self.asks, self.failed, nodes, self.profile)
        return found if isinstance(found, Remedy) else None

    def listening(self) -> Case:
        """The same with a free host port for the pod.

        Then its filters see more than counts, and rows are looked at one by one.
        """
        nodes = self.engine.cluster.nodes
        port = {"name": "side", "ports": [{"hostPort": 9}], "resources": {}}
        (side,) = pod("asks", spec={"containers": [port]}).spec.containers
        spec = self.asks.spec
        spec = msgspec.structs.replace(spec, containers=(*spec.containers, side))
        asks = msgspec.structs.replace(self.asks, spec=spec)
        outcome = decide(self.profile, asks, nodes)
        assert isinstance(outcome, Failed)
        assert not sees_only_counts(self.profile, asks, outcome.pre_filtered, nodes)
        return Case(self.engine, asks, outcome)

    def fits_without(self, gone: tuple[Pod, ...], on: str) -> bool:
        """Whether the pod fits on a node once some pods are gone from the cluster."""
        cluster = self.engine.cluster
        for each in gone:
            cluster.remove_pod(each.uid)
        row = cluster.nodes.row(on)
        outcome = decide(self.profile, self.asks, cluster.nodes)
        fits = row in outcome.filtered.feasible_rows if outcome.filtered is not None else False
        for each in gone:
            cluster.put_pod(each)
        return fits


@st.composite
def storage(draw: st.DrawFn) -> list[StorageObject]:
    """Volumes for the claims, here or there, and nodes that attach so many; or no limits."""
    made: list[StorageObject] = [storage_class()]
    for name in CLAIMS:
        hosts = draw(st.sampled_from([(), (), (), ("n0", "n1")]))
        bound = draw(st.booleans())
        made.append(pvc(name, volume=f"pv-{name}" if bound else ""))
        made.append(pv(f"pv-{name}", claim=name if bound else "", hosts=hosts))
    if draw(st.booleans()):
        made.extend(csi_node(f"n{at}", csi=draw(st.integers(1, 3))) for at in range(2))
    return made


@st.composite
def cases(draw: st.DrawFn, volumes: Fields = NO_VOLUMES) -> Case | None:
    made = engine()
    for item in draw(storage()) if volumes is not NO_VOLUMES else ():
        made.cluster.put_storage(item)
    for at in range(draw(st.integers(1, 3))):
        made.cluster.put_node(node(f"n{at}", cpu=4, memory=4, pods=draw(st.integers(1, 5))))
        for number in range(draw(st.integers(0, 4))):
            made.cluster.put_pod(draw(running(f"p{at}-{number}", f"n{at}", volumes)))
    for budget in draw(BUDGETS):
        made.cluster.put_workload(budget)
    asks = pod(
        "asks",
        spec={"priority": draw(st.integers(0, 4)), **draw(POLICIES), **draw(volumes)},
        cpu=draw(st.sampled_from([4, 4, 0])),
        memory=draw(st.sampled_from([0, 0, 2, 4])),
    )
    if draw(st.booleans()):
        rival = draw(running("rival", "", volumes))
        made.cluster.nominate(rival, "n0")
    outcome = decide(made.profiles["default-scheduler"], asks, made.cluster.nodes)
    return Case(made, asks, outcome) if isinstance(outcome, Failed) else None


LAW = settings(max_examples=30)


@given(cases())
@LAW
def test_only_the_less_important_go_and_none_in_vain(case: Case | None) -> None:
    if case is None or (remedy := case.remedy()) is None:
        return
    victims = remedy.victims

    assert victims
    assert all(victim.priority < case.asks.priority for victim in victims)
    assert {victim.node_name for victim in victims} == {remedy.node_name}
    assert case.fits_without(victims, remedy.node_name)
    for spared in victims:
        others = tuple(victim for victim in victims if victim is not spared)
        assert not case.fits_without(others, remedy.node_name), f"{spared.key} goes in vain"
    ranks = [(-victim.priority, victim.started or float("inf")) for victim in victims]
    assert [rank[0] for rank in ranks] == sorted(rank[0] for rank in ranks)


@given(cases())
@LAW
def test_no_budget_is_broken_if_another_candidate_breaks_none(case: Case | None) -> None:
    if case is None or (remedy := case.remedy()) is None:
        return
    nodes = case.engine.cluster.nodes
    found = case.plugin.candidates(case.asks, case.failed, nodes, case.profile, Counter())
    names = nodes.names(found.rows.tolist())
    violations = dict(zip(names, found.violations.tolist(), strict=True))
    victims = {name: found.victims(at) for at, name in enumerate(names)}

    assert victims[remedy.node_name] == remedy.victims
    assert violations[remedy.node_name] == min(violations.values())
    for name, count in violations.items():
        # Those who could be spared in the end count for the budgets too: never too few.
        assert count >= _broken(case.engine, victims[name])
    if min(violations.values()) == 0:
        assert _broken(case.engine, remedy.victims) == 0


def _broken(of: Engine, victims: tuple[Pod, ...]) -> int:
    """How many victims are more than their budgets allow, all victims taken together."""
    budgets = list(of.cluster.nodes.workloads.budgets)
    left = {budget.key: budget.disruptions_allowed for budget in budgets}
    broken = 0
    for victim in victims:
        covering = [budget.key for budget in budgets if budget.covers(victim)]
        for key in covering:
            left[key] -= 1
        broken += any(left[key] < 0 for key in covering)
    return broken


@given(cases())
@LAW
def test_if_anybody_can_make_way_somebody_does(case: Case | None) -> None:
    """Where removing all less important pods of a node helps, a remedy is found, and only there."""
    if case is None:
        return
    cluster = case.engine.cluster
    helped = set()
    for row in cluster.nodes.rows.tolist():
        lesser = tuple(
            each for each in cluster.nodes.pods(row).values() if each.priority < case.asks.priority
        )
        if lesser and case.fits_without(lesser, cluster.nodes.name(row)):
            helped.add(cluster.nodes.name(row))
    remedy = case.remedy()

    assert (remedy is not None) == bool(helped)
    if remedy is not None:
        assert remedy.node_name in helped


@given(cases())
@LAW
def test_looking_for_victims_changes_nothing(case: Case | None) -> None:
    if case is None:
        return
    before = columns_of(case.engine.cluster.nodes)
    first = case.remedy()

    assert case.remedy() == first
    assert columns_of(case.engine.cluster.nodes) == before
    check(case.engine.cluster)


@given(cases())
@LAW
def test_the_quick_way_agrees_with_the_exact_one(case: Case | None) -> None:
    if case is not None:
        assert case.listening().remedy() == case.remedy()


@given(cases(VOLUMES))
@settings(max_examples=40)
def test_so_it_does_for_pods_with_volumes(case: Case | None) -> None:
    """Where volumes may be attached without a limit, or none is, and where limits decide."""
    if case is not None:
        assert case.listening().remedy() == case.remedy()
