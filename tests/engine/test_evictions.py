"""The ledger of evictions: who is held back, and what people are shown."""

from __future__ import annotations

from moorage.engine.actions import Action
from moorage.engine.evictions import Evictions, PlannedPreemption
from moorage.objects.pod_group import PodGroup
from tests.builders import pod


def ledger() -> tuple[Evictions, list[Action]]:
    emitted: list[Action] = []
    return Evictions(emitted.append), emitted


def test_a_pod_and_a_group_of_one_uid_are_held_back_each_for_itself() -> None:
    evictions, _ = ledger()
    group = PodGroup(namespace="default", name="train", uid="default/train")
    for each in (pod("train"), group):
        wanted = PlannedPreemption(each, (pod("victim", node="n"),), "Plugin", "profile")
        evictions.begin(wanted, lambda *_: False, 0.0)

    evictions.forget("default/train")

    assert evictions.hold_back("default/train") is None
    held = evictions.hold_back(group.group_key)
    assert held is not None
    assert held[1].message == "waiting for the preemption for this pod group to be finished"


def test_a_preemption_of_pods_that_are_bound_nowhere_holds_nothing_back() -> None:
    evictions, emitted = ledger()
    wanted = PlannedPreemption(pod("p"), (pod("victim"),), "Plugin", "profile", "n")

    evictions.begin(wanted, lambda *_: True, 0.0)

    assert evictions.hold_back(pod("p").uid) is None
    assert len(emitted) == 1


def test_the_latest_preemptions_name_some_victims_and_count_all() -> None:
    evictions, _ = ledger()
    for at in range(70):
        victims = tuple(pod(f"victim-{number}") for number in range(at))
        wanted = PlannedPreemption(pod(f"p{at}"), victims, "Plugin", "profile", "n")
        evictions.begin(wanted, lambda *_: True, 0.0)

    entries = evictions.since(0)

    assert [each.serial for each in entries] == list(range(7, 71))
    assert (entries[-1].count, len(entries[-1].victims)) == (69, 20)
    assert [each.serial for each in evictions.since(68)] == [69, 70]
