"""What an engine asks for is done at once, and the engine hears of it."""

from __future__ import annotations

from typing import ClassVar

from moorage.cluster import Nodes
from moorage.engine.actions import BindPod, EvictPod, PodRef
from moorage.framework.plugin import Reserve
from moorage.framework.status import Code, Rejected
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import PodDisruptionBudget
from moorage.world import World, place_pod
from tests.builders import node, pod
from tests.engine.driver import engine


def ref(of: Pod) -> PodRef:
    return PodRef(of.namespace, of.name, of.uid)


def test_a_binding_confirms_the_pod_on_its_node() -> None:
    world = World(engine())
    world.apply(node("n"), 0.0)
    world.apply(pod("web", cpu=1), 0.0)

    actions = world.engine.step(0.0, 1)
    world.perform(actions, 0.0)

    assert any(isinstance(each, BindPod) for each in actions)
    assert world.pods["default/web"].node_name == "n"
    assert not world.engine.cluster.is_assumed("default/web")


def test_an_eviction_removes_the_pod_once_and_uses_up_its_budgets() -> None:
    world = World(engine())
    victim = pod("web", node="n", labels={"app": "web"})
    budget = PodDisruptionBudget(
        namespace="default", name="web", selector=equality({"app": "web"}), disruptions_allowed=1
    )
    for item in (node("n"), victim, budget):
        world.apply(item, 0.0)
    action = EvictPod(ref(victim), ref(pod("vip")), "")

    assert world.evict(action, 0.0) == victim
    assert world.evict(action, 0.0) is None
    assert not world.pods
    assert world.engine.cluster.pod(victim.uid) is None
    (left,) = world.engine.cluster.nodes.workloads.budgets
    assert left.disruptions_allowed == 0


class Refuses(Reserve):
    """Never reserves; remembers what it was told to give back."""

    name: ClassVar[str] = "Refuses"
    returned: ClassVar[list[str]] = []

    def reserve(self, pod: Pod, nodes: Nodes, row: int) -> Rejected | None:
        return Rejected(Code.UNSCHEDULABLE, ("no",))

    def unreserve(self, pod: Pod, nodes: Nodes, node_name: str) -> None:
        self.returned.append(node_name)


def test_what_a_plugin_refuses_to_reserve_is_taken_back() -> None:
    Refuses.returned.clear()
    plain, refusing = engine(), engine(Refuses)
    for made in (plain, refusing):
        World(made).apply(node("n"), 0.0)
        place = place_pod(made.cluster, made.profiles["default-scheduler"], pod("web"), "n")
        assert (place is None) is (made is plain)

    assert plain.cluster.is_assumed("default/web")
    assert refusing.cluster.pod("default/web") is None
    assert Refuses.returned == ["n"]
