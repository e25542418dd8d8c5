"""Two candidates and a real lease."""

from __future__ import annotations

import asyncio
import json

import pytest

from mooring.app.leadership import Leadership
from mooring.client import Api, connect
from mooring.config import LeaderElection
from mooring.config.duration import Duration
from mooring.objects.kinds import KINDS
from tests.live.control_plane import ControlPlane

pytestmark = pytest.mark.live

SETTINGS = LeaderElection(
    lease_duration=Duration.of_seconds(3),
    renew_deadline=Duration.of_seconds(2),
    retry_period=Duration.parse("200ms"),
)


async def test_a_standby_takes_over_from_one_who_lets_go_and_from_one_who_vanishes(
    plane: ControlPlane,
) -> None:
    """As the user whom Kubernetes lets hold the lease of its scheduler."""
    connection = await connect(str(plane.kubeconfig), "scheduler")
    async with Api(connection) as api, Api(connection) as other_api, asyncio.timeout(60):
        a = Leadership(api, SETTINGS, "a")
        b = Leadership(other_api, SETTINGS, "b")
        await a.campaign()
        holding = asyncio.create_task(a.hold())
        campaign = asyncio.create_task(b.campaign())
        await asyncio.sleep(4)
        assert a.may_act()
        assert not campaign.done()
        assert b.leader == "a"

        holding.cancel()
        await a.release()
        await campaign
        assert b.may_act()
        assert not a.may_act()

        # It never renews.
        await a.campaign()
        assert not b.may_act()
        assert (a.leader, a.transitions) == ("a", 2)
        path = KINDS["Lease"].path("kube-system", "kube-scheduler")
        assert json.loads(await api.get(path))["spec"]["holderIdentity"] == "a"
