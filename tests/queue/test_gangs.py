"""Gangs in the queue: the pods of a group are one entity, with the places of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster.pod_groups import PodGroups
from moorage.framework.status import unresolvable
from moorage.framework.wakeups import Action, ClusterEvent, Resource, Topics, on
from moorage.objects.pod_group import GroupLinks
from moorage.queue import FailedAttempt, Gang, Queue
from tests.builders import pod
from tests.engine.gangs import gang, members
from tests.queue.driver import BOTH, PROFILE, make_queue, places
from tests.storage_builders import pvc

CLAIM_ADD = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, "ClaimAdd")
OF_NAMESAKE = on(
    Resource.PERSISTENT_VOLUME_CLAIM,
    Action.ADD,
    lambda of, _, new: of.name == new.name,
    reads=lambda of: of.name,
    topics=Topics(lambda _, new: [new.name], lambda of: [of.name]),
)
GROUP = gang("g", 2)
KEY = GROUP.group_key


class Room:
    """A queue, and the groups that it knows."""

    def __init__(self, *, is_known: bool = True, **options: Any) -> None:
        self.groups = PodGroups(GroupLinks(native=True))
        self.queue = make_queue(groups=self.groups, **options)
        if is_known:
            self.put()

    def put(self) -> None:
        self.queue.put_group(self.groups.put(GROUP), GROUP, 0.0)

    def drop(self) -> None:
        self.groups.drop(GROUP)
        self.queue.remove_group(KEY, 0.0)


def popped(queue: Queue, now: float) -> Gang:
    entity = queue.pop(now)
    assert isinstance(entity, Gang)
    return entity


def test_a_gang_is_popped_as_one_and_returns_with_those_that_came_meanwhile() -> None:
    queue = Room().queue
    first, second, third = members("g", 3)
    for each in (first, second):
        queue.add(each, 0.0)
    entity = popped(queue, 0.0)
    queue.add(third, 0.0)
    assert set(places(queue).values()) == {"in flight"}
    assert queue.sizes()["pending"] == 1

    queue.members_placed(entity, [first.uid])
    queue.put_back(entity, now=1.0)

    assert places(queue) == {"g-1": "active", "g-2": "active"}
    assert [each.pod.name for each in popped(queue, 1.0).in_order] == ["g-1", "g-2"]


def test_pods_of_an_unknown_group_wait_until_it_is_there() -> None:
    room = Room(is_known=False)
    for each in members("g", 2):
        room.queue.add(each, 0.0)
    assert set(places(room.queue).values()) == {"incomplete"}
    assert room.queue.pop(0.0) is None

    room.put()
    assert set(places(room.queue).values()) == {"active"}
    entity = popped(room.queue, 0.0)
    room.drop()
    room.queue.give_back(entity, attempt=FailedAttempt(is_rejection=True), now=0.0)
    assert set(places(room.queue).values()) == {"incomplete"}
    for each in members("g", 2):
        room.queue.delete(each)
    assert places(room.queue) == {}


@pytest.mark.parametrize(("claim", "place"), [("g-1", "active"), ("g-0", "gated")])
def test_what_helps_the_member_that_is_held_back_frees_the_gang(claim: str, place: str) -> None:
    held = {"g-1"}
    queue = Room(
        admit=lambda of, _: ("Claims", unresolvable("no claim")) if of.name in held else None,
        wakeups={PROFILE: {"Claims": (OF_NAMESAKE,)}},
    ).queue
    for each in members("g", 2):
        queue.add(each, 0.0)
    assert set(places(queue).values()) == {"gated"}

    held.clear()
    queue.wake(CLAIM_ADD, None, pvc(claim), 1.0)

    assert set(places(queue).values()) == {place}


def test_a_gang_that_lacks_room_is_left_alone_until_something_may_have_made_room() -> None:
    queue = Room().queue
    for each in members("g", 2):
        queue.add(each, 0.0)
    entity = popped(queue, 0.0)
    lacks_room = FailedAttempt(is_rejection=True, needs_room=True)
    queue.give_back(entity, attempt=lacks_room, now=0.0)

    queue.flush(50.0)
    assert set(places(queue).values()) == {"error backoff"}
    queue.wake(BOTH, None, None, 51.0)
    queue.flush(100.0)
    assert set(places(queue).values()) == {"active"}


def test_a_pod_that_names_another_group_leaves_its_gang() -> None:
    queue = Room().queue
    first, second = members("g", 2)
    for each in (first, second):
        queue.add(each, 0.0)
    alone = pod("g-0", metadata={"uid": first.uid})
    queue.update(first, alone, 0.0)

    entities = [queue.pop(0.0), queue.pop(0.0)]
    assert sorted(type(each).__name__ for each in entities) == ["Entity", "Gang"]
    assert {each.pod.name for each in queue.in_flight} == {"g-0", "g-1"}
    queue.check()


def test_the_most_important_member_decides_when_a_gang_is_tried() -> None:
    queue = Room().queue
    queue.add(pod("early", spec={"priority": 5}), 0.0)
    plain, important = members("g", 1)[0], members("g", 1, start=1, spec={"priority": 9})[0]
    queue.add(plain, 1.0)
    queue.add(important, 1.0)

    assert [each.pod.name for each in popped(queue, 1.0).in_order] == ["g-1", "g-0"]
