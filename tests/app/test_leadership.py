"""Who leads: one at a time, always somebody soon, and nobody for longer than agreed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from moorage.app import leadership
from moorage.app.leadership import Leadership
from moorage.client import Api
from moorage.config import LeaderElection
from moorage.config.duration import Duration
from tests.app.leases import FINE, LeaseApi, Leases, Trouble
from tests.virtual_time import run_virtually

SETTINGS = LeaderElection()
LEASE_SECONDS, DEADLINE, RETRY = 15.0, 10.0, 2.0
LONGEST_RETRY = RETRY * 2.2


def virtually(
    test: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """A test for whom time passes at once."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        run_virtually(test(*args, **kwargs))

    return run


def time() -> float:
    return asyncio.get_running_loop().time()


def candidate(
    leases: Leases,
    name: str,
    *,
    trouble: Callable[[], Trouble] = lambda: FINE,
    settings: LeaderElection = SETTINGS,
    ahead: float = 0.0,
    **given: Any,
) -> Leadership:
    """One whose clocks, both of them, are ahead of the others' by some seconds."""
    loop = asyncio.get_running_loop()
    return Leadership(
        cast(Api, LeaseApi(leases, trouble)),
        settings,
        name,
        clock=lambda: loop.time() + ahead,
        now=lambda: datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=loop.time() + ahead),
        chance=lambda: 1.0,
        **given,
    )


@virtually
async def test_the_first_makes_the_lease() -> None:
    leases = Leases()
    a = candidate(leases, "a")
    assert not a.may_act()

    await a.await_election()

    assert a.may_act()
    assert (a.leader, a.transitions) == ("a", 0)
    assert leases.lease == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system", "resourceVersion": "1"},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2030-01-01T00:00:00.000000Z",
            "renewTime": "2030-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        },
    }


@virtually
async def test_a_standby_takes_over_when_the_lease_stands_still() -> None:
    leases = Leases()
    a = candidate(leases, "a", ahead=1e6)
    await a.await_election()
    b = candidate(leases, "b")

    await b.await_election()

    # It asks every 4.4 s, and saw the lease at 0 for the first time.
    assert time() == pytest.approx(17.6)
    assert (b.leader, b.transitions) == ("b", 1)
    assert leases.writes[-1]["acquireTime"] == leases.writes[-1]["renewTime"]
    assert not a.may_act()


@virtually
async def test_a_lease_that_is_renewed_is_not_taken() -> None:
    leases = Leases()
    a, b = candidate(leases, "a"), candidate(leases, "b", ahead=-1e6)
    await a.await_election()
    holding = asyncio.create_task(a.hold())
    await_election = asyncio.create_task(b.await_election())

    await asyncio.sleep(301)

    assert a.may_act()
    assert not b.may_act()
    assert not await_election.done()
    assert b.leader == "a"
    assert len({each["acquireTime"] for each in leases.writes}) == 1
    assert {each["leaseTransitions"] for each in leases.writes} == {0}
    assert len({each["renewTime"] for each in leases.writes}) == 151
    holding.cancel()
    await_election.cancel()


@virtually
async def test_renewing_costs_one_request() -> None:
    leases = Leases()
    api = LeaseApi(leases)
    loop = asyncio.get_running_loop()
    a = Leadership(cast(Api, api), SETTINGS, "a", clock=loop.time)
    await a.await_election()
    before = api.requests
    holding = asyncio.create_task(a.hold())
    await asyncio.sleep(RETRY * 10.5)

    assert api.requests - before == 10
    holding.cancel()


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(Trouble(request_lost=True), id="nobody there"),
        pytest.param(Trouble(there=60), id="no answer"),
        pytest.param(Trouble(answer_lost=True, back=1), id="answers are lost"),
    ],
)
@virtually
async def test_who_cannot_renew_stops_in_time(bad: Trouble) -> None:
    trouble = FINE
    changes: list[tuple[bool, str]] = []
    leases = Leases()
    a = candidate(
        leases, "a", trouble=lambda: trouble, on_change=lambda *told: changes.append(told)
    )
    await a.await_election()
    trouble = bad

    await a.hold()

    assert time() == pytest.approx(DEADLINE, abs=RETRY)
    assert not a.may_act()
    assert a.problem
    assert changes == [(True, "a"), (False, "a")]


@pytest.mark.parametrize("there_is_one", [False, True], ids=["new", "left by another"])
@virtually
async def test_an_answer_on_the_way_does_not_lengthen_the_term(there_is_one: bool) -> None:
    """What counts is when the renewal was sent: others may have seen it since."""
    leases = Leases()
    if there_is_one:
        leases.lease = {"metadata": {"name": "x", "resourceVersion": "0"}, "spec": {}}
    a = candidate(leases, "a", trouble=lambda: Trouble(back=8))

    await a.await_election()

    # Asking whether there is a lease took the first eight seconds.
    assert time() == 16
    assert a.may_act()
    await asyncio.sleep(DEADLINE - 8)
    assert not a.may_act()


@virtually
async def test_who_sees_another_holder_stops_at_once() -> None:
    leases = Leases()
    a = candidate(leases, "a")
    await a.await_election()
    lease = leases.read()
    leases.write({**lease, "spec": {**lease["spec"], "holderIdentity": "usurper"}}, create=False)

    await a.hold()

    assert time() == RETRY
    assert not a.may_act()
    assert a.leader == "usurper"


@virtually
async def test_after_a_release_a_standby_need_not_wait() -> None:
    leases = Leases()
    a, b = candidate(leases, "a"), candidate(leases, "b")
    await a.await_election()
    await_election = asyncio.create_task(b.await_election())
    await asyncio.sleep(1)

    await a.release()

    assert not a.may_act()
    assert leases.holder == ""
    assert leases.writes[-1]["leaseDurationSeconds"] == 1
    await await_election
    assert time() <= 1 + LONGEST_RETRY
    assert (leases.holder, b.transitions) == ("b", 1)


@virtually
async def test_a_release_finds_a_lease_that_was_renewed_without_an_answer() -> None:
    leases = Leases()
    trouble = FINE
    a = candidate(leases, "a", trouble=lambda: trouble)
    await a.await_election()
    trouble = Trouble(answer_lost=True)
    holding = asyncio.create_task(a.hold())
    await asyncio.sleep(RETRY + 1)
    holding.cancel()
    trouble = FINE

    await a.release()

    assert leases.holder == ""


@virtually
async def test_only_the_holder_releases() -> None:
    leases = Leases()
    a, b = candidate(leases, "a"), candidate(leases, "b")
    await a.await_election()
    await_election = asyncio.create_task(b.await_election())
    await asyncio.sleep(30)
    assert await_election.done()

    await a.release()

    assert leases.holder == "b"


@virtually
async def test_who_never_led_has_nothing_to_release() -> None:
    api = LeaseApi(Leases())

    await Leadership(cast(Api, api), SETTINGS, "a").release()

    assert api.requests == 0


@virtually
async def test_a_release_that_fails_is_no_error() -> None:
    leases = Leases()
    trouble = FINE
    a = candidate(leases, "a", trouble=lambda: trouble)
    await a.await_election()
    trouble = Trouble(there=100)

    await a.release()

    assert time() == DEADLINE
    assert not a.may_act()


@virtually
async def test_what_others_wrote_into_the_lease_stays() -> None:
    leases = Leases()
    await candidate(leases, "a").await_election()
    lease = leases.read()
    lease["metadata"]["labels"] = {"team": "x"}
    lease["spec"]["strategy"] = "OldestEmulationVersion"
    b = candidate(leases, "b")
    await b.await_election()
    await b.release()

    assert leases.read()["metadata"]["labels"] == {"team": "x"}
    assert {each.get("strategy") for each in leases.writes[1:]} == {"OldestEmulationVersion"}


@virtually
async def test_a_lease_that_somebody_deleted_is_made_again() -> None:
    leases = Leases()
    a = candidate(leases, "a")
    await a.await_election()
    leases.lease = None
    holding = asyncio.create_task(a.hold())
    await asyncio.sleep(RETRY + 1)

    assert leases.holder == "a"
    assert a.may_act()
    holding.cancel()


@virtually
async def test_a_lease_that_somebody_deleted_and_another_made_again() -> None:
    """Deleting it lets two act, but not for longer than it takes to notice."""
    leases = Leases()
    trouble = FINE
    a, b = candidate(leases, "a", trouble=lambda: trouble), candidate(leases, "b")
    await a.await_election()
    leases.lease = None
    trouble = Trouble(there=1)
    holding = asyncio.create_task(a.hold())
    # Renewing and looking took a second each; creating is on its way.
    await asyncio.sleep(RETRY + 2.5)
    await b.await_election()
    await asyncio.sleep(1)

    assert b.may_act()
    assert not a.may_act()
    await holding


@virtually
async def test_a_lease_of_which_nothing_is_known_may_be_taken() -> None:
    leases = Leases()
    leases.lease = {"metadata": {"name": "x", "resourceVersion": "0"}, "spec": {}}
    a = candidate(leases, "a")

    await a.await_election()

    assert time() == 0
    assert (leases.holder, a.transitions) == ("a", 1)


@virtually
async def test_a_lease_that_makes_no_sense_is_not_touched() -> None:
    leases = Leases()
    leases.lease = {
        "metadata": {"name": "x", "resourceVersion": "0"},
        "spec": {"holderIdentity": 7},
    }
    a = candidate(leases, "a")
    await_election = asyncio.create_task(a.await_election())
    await asyncio.sleep(60)

    assert not await_election.done()
    assert "holderIdentity" in a.problem
    await_election.cancel()


@virtually
async def test_the_lease_is_never_shorter_than_it_is_meant_to_be() -> None:
    leases = Leases()
    settings = LeaderElection(
        lease_duration=Duration.parse("1500ms"),
        renew_deadline=Duration.parse("1200ms"),
        retry_period=Duration.parse("500ms"),
    )
    await candidate(leases, "a", settings=settings).await_election()

    assert leases.read()["spec"]["leaseDurationSeconds"] == 2


@virtually
async def test_changes_are_told() -> None:
    leases = Leases()
    told: list[tuple[bool, str]] = []
    a = candidate(leases, "a")
    b = candidate(leases, "b", on_change=lambda *each: told.append(each))
    await a.await_election()
    await_election = asyncio.create_task(b.await_election())
    await asyncio.sleep(1)
    await a.release()
    await await_election
    await b.release()

    assert told == [(False, "a"), (True, "b"), (False, "b")]


def test_times_are_written_with_microseconds() -> None:
    async def written() -> str:
        leases = Leases()
        a = Leadership(cast(Api, LeaseApi(leases)), SETTINGS, "a")
        await a.await_election()
        return str(leases.read()["spec"]["renewTime"])

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", asyncio.run(written()))


TROUBLES = st.builds(
    Trouble,
    there=st.sampled_from([0.0, 0.1, 1.0, 4.0, 12.0]),
    back=st.sampled_from([0.0, 0.1, 1.0, 4.0, 12.0]),
    request_lost=st.booleans(),
    answer_lost=st.booleans(),
)
#: How each life of a candidate goes: how long it holds the lease, and whether it then lets go.
LIVES = st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=3)


@given(
    troubles=st.lists(st.lists(TROUBLES, max_size=12), min_size=3, max_size=3),
    lives=st.lists(LIVES, min_size=3, max_size=3),
    ahead=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
)
def test_never_two_and_soon_one(
    troubles: list[list[Trouble]], lives: list[list[tuple[int, bool]]], ahead: list[float]
) -> None:
    """Over a bad network and with any clocks; once the network is well, somebody leads."""

    async def play() -> None:
        leases = Leases()
        candidates = []
        for number in range(3):
            left = iter(troubles[number])
            candidates.append(
                candidate(
                    leases,
                    f"candidate-{number}",
                    trouble=lambda left=left: next(left, FINE),  # type: ignore[misc]
                    ahead=ahead[number],
                )
            )
        living = [
            asyncio.create_task(live(each, plan))
            for each, plan in zip(candidates, lives, strict=True)
        ]
        for _ in range(2400):
            await asyncio.sleep(0.25)
            acting = [each.leader for each in candidates if each.may_act()]
            assert len(acting) <= 1
        assert len(acting) == 1
        for task in living:
            task.cancel()
        await asyncio.gather(*living, return_exceptions=True)

    run_virtually(play())


async def live(one: Leadership, plan: list[tuple[int, bool]]) -> None:
    for seconds, lets_go in plan:
        await one.await_election()
        try:
            async with asyncio.timeout(seconds):
                await one.hold()
        except TimeoutError:
            pass
        if lets_go:
            await one.release()
        await asyncio.sleep(seconds)
    while True:
        await one.await_election()
        await one.hold()


@virtually
async def test_a_suspended_machine_does_not_lead_when_it_wakes_up() -> None:
    """A monotonic clock stands still while a machine is suspended; the lease does not."""
    suspended = 0.0
    loop = asyncio.get_running_loop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leadership, "time", Clocks(loop.time, lambda: loop.time() + suspended))
        a = Leadership(cast(Api, LeaseApi(Leases())), SETTINGS, "a")
        term = await a.await_election()
        assert term.holds()

        suspended = LEASE_SECONDS

        assert not term.holds()
        assert not a.may_act()


class Clocks:
    """The module `time`, with clocks of our own."""

    CLOCK_BOOTTIME = 7

    def __init__(self, monotonic: Callable[[], float], boot: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self._boot = boot

    def clock_gettime(self, clock: int) -> float:
        assert clock == self.CLOCK_BOOTTIME
        return self._boot()


@virtually
async def test_a_term_that_is_over_is_over_for_good() -> None:
    """Another may have led since: what was decided in the old term must not be written."""
    leases = Leases()
    a = candidate(leases, "a")
    old = await a.await_election()
    await asyncio.sleep(DEADLINE)
    assert not old.holds()

    new = await a.await_election()

    assert new.holds()
    assert not old.holds()


@virtually
async def test_an_exchange_longer_than_the_lease_wins_nothing() -> None:
    """By the time the answer is there, another may hold the lease."""
    leases = Leases()
    back = DEADLINE + 1
    a = candidate(leases, "a", trouble=lambda: Trouble(back=back))
    await_election = asyncio.create_task(a.await_election())
    await asyncio.sleep(5 * back)
    assert not await_election.done()

    back = 0.0
    term = await await_election

    assert term.holds()


@virtually
async def test_who_is_not_well_lets_the_lease_run_out() -> None:
    leases = Leases()
    well = True
    a = candidate(leases, "a", is_well=lambda: well)
    b = candidate(leases, "b")
    await a.await_election()
    holding = asyncio.create_task(a.hold())
    await_election = asyncio.create_task(b.await_election())
    await asyncio.sleep(LEASE_SECONDS * 2)
    assert not await_election.done()

    well, began = False, time()
    await holding
    assert time() - began <= DEADLINE + RETRY
    assert "no decision ends" in a.problem
    await await_election
    assert leases.holder == "b"
    assert time() - began <= LEASE_SECONDS + LONGEST_RETRY + RETRY


@virtually
async def test_who_is_not_well_is_no_candidate() -> None:
    leases = Leases()
    well = False
    a = candidate(leases, "a", is_well=lambda: well)
    await_election = asyncio.create_task(a.await_election())
    await asyncio.sleep(60)
    assert leases.lease is None

    well = True
    await await_election
    assert leases.holder == "a"
