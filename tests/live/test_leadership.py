"""Two candidates and a real lease."""

from __future__ import annotations

import asyncio
import json

import pytest

from moorage.app.leadership import Leadership
from moorage.client import Api, connect
from moorage.config import LeaderElection
from moorage.config.duration import Duration
from moorage.objects.kinds import KINDS
from tests.live.control_plane import ControlPlane
from tests.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.live

_LEASE = KINDS["Lease"].path("kube-system", "kube-scheduler")

SETTINGS = LeaderElection(
    # Long enough for a busy machine, on which a renewal may take seconds.
    lease_duration=Duration.of_seconds(30),
    renew_deadline=Duration.of_seconds(25),
    retry_period=Duration.parse("200ms"),
)


async def test_a_standby_takes_over_from_one_who_lets_go_and_from_one_who_vanishes(
    plane: ControlPlane,
) -> None:
    """As the user whom Kubernetes lets hold the lease of its scheduler."""
    connection = await connect(str(plane.kubeconfig), "scheduler")
    async with (
        Api(connection) as api,
        Api(connection) as other_api,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        a = Leadership(api, SETTINGS, "a")
        b = Leadership(other_api, SETTINGS, "b")
        await a.await_election()
        holding = asyncio.create_task(a.hold())
        await_election = asyncio.create_task(b.await_election())
        seen: set[str] = set()

        async def has_renewed() -> bool:
            lease = json.loads(await api.get(_LEASE))
            seen.add(lease["spec"]["renewTime"])
            return len(seen) > 3

        await until(has_renewed)
        assert a.may_act()
        assert not await_election.done()
        assert b.leader == "a"

        holding.cancel()
        await a.release()
        await await_election
        assert b.may_act()
        assert not a.may_act()

        # It never renews.
        await a.await_election()
        assert not b.may_act()
        assert (a.leader, a.transitions) == ("a", 2)
        assert json.loads(await api.get(_LEASE))["spec"]["holderIdentity"] == "a"
