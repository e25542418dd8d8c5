"""Whatever is asked for and published, groups and short cuts find what a plain search finds.

The plain search looks at each node by itself, tries every device, and remembers nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from moorage.cluster import Cluster, Nodes, check
from moorage.cluster.devices import groups
from moorage.plugins.dynamic_resources import search
from moorage.plugins.dynamic_resources.asks import CompiledClaim, SearchError
from moorage.plugins.dynamic_resources.device_allocation import AllocationFound, ClaimsPlan
from moorage.plugins.dynamic_resources.preparation import ClaimPlans, RowOutcomes
from moorage.plugins.dynamic_resources.search import Candidate, DeviceSearch, SearchTooLongError
from tests.builders import node
from tests.device_builders import (
    DRIVER,
    claim,
    device,
    device_class,
    holding,
    resource_slice,
    result,
)

FAST = f'device.attributes["{DRIVER}"].model == "fast"'
BREAKS = f'device.attributes["{DRIVER}"].numa == 0'
NUMA, MODEL = f"{DRIVER}/numa", f"{DRIVER}/model"
#: What a plain search makes of the claims on a row: the devices, nothing, or an error.
Plain = list[tuple[int, str, str, str, Any]] | str | None


class _Forgetful(set[Hashable]):
    """Keeps nothing."""

    def add(self, element: Hashable) -> None:
        pass


class PlainSearch(DeviceSearch):
    """Tries whatever there is, also where the same has failed before."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._failed = _Forgetful()

    def _kind(self, candidate: Candidate) -> Hashable | None:
        return None


# Clusters


def make_device(random: Random, at: int) -> dict[str, Any]:
    made: dict[str, Any] = {"attributes": {"model": {"string": random.choice(["fast", "slow"])}}}
    if random.random() < 0.95:
        made["attributes"]["numa"] = {"int": random.randrange(2)}
    if random.random() < 0.4:
        made["capacity"] = {"memory": {"value": random.choice(["4Gi", "8Gi"])}}
    if random.random() < 0.2:
        made["allowMultipleAllocations"] = True
    if random.random() < 0.1:
        effect = random.choice(["NoSchedule", "NoExecute", "None"])
        made["taints"] = [{"key": "bad", "value": "v", "effect": effect}]
    if random.random() < 0.1:
        made["bindingConditions"] = ["ready"]
    return device(f"gpu-{at}", **made)


def put_pool(random: Random, cluster: Cluster, name: str, like: list[dict[str, Any]]) -> None:
    """A pool of one of many kinds: of a node or shared, whole or not, with counters or without."""
    devices = [make_device(random, at) for at in range(random.choice([1, 2, 3]))]
    kind = random.choice(["node", "node", "node", "all", "each", "counters", "missing"])
    if random.random() < 0.6:
        # Many nodes are like others.
        devices, kind = deepcopy(like), random.choice(["node", "node", "node", "all"])
    where: dict[str, Any] = {} if name in ("n1", "n2", "n3") else {"nodeName": "n2"}
    if kind == "counters":
        for each in devices:
            taken = {"memory": {"value": random.choice(["2Gi", "4Gi"])}}
            each["consumesCounters"] = [{"counterSet": "set", "counters": taken}]
        pool = {"name": name, "resourceSliceCount": 2}
        declared = [{"name": "set", "counters": {"memory": {"value": "5Gi"}}}]
        counters = resource_slice(
            f"{name}-c", [], pool=pool, sharedCounters=declared, nodeName="n1"
        )
        cluster.put_device(counters)
        cluster.put_device(resource_slice(name, devices, pool=pool, **where))
        return
    if kind == "all":
        where = {"allNodes": True}
    elif kind == "each":
        for each in devices:
            each |= random.choice([{"nodeName": "n1"}, {"allNodes": True}])
        where = {"perDeviceNodeSelection": True}
    count = 2 if kind == "missing" and random.random() < 0.3 else 1
    cluster.put_device(resource_slice(name, devices, pool={"resourceSliceCount": count}, **where))


def put_use(random: Random, cluster: Cluster, number: int, pools: list[str]) -> None:
    """Somebody has a device, a share of one, or gives back what they had."""
    name = f"held-{number}"
    if random.random() < 0.2:
        cluster.put_device(claim(name))
        return
    share: dict[str, Any] = {}
    if random.random() < 0.3:
        share = {"shareID": name, "consumedCapacity": {"memory": random.choice(["1Gi", "3Gi"])}}
    elif random.random() < 0.1:
        share = {"adminAccess": True}
    taken = result(random.choice(pools), f"gpu-{random.randrange(3)}", **share)
    cluster.put_device(holding(name, taken))


# Claims


def make_ask(random: Random, allows_admin: bool) -> dict[str, Any]:
    ask: dict[str, Any] = {"deviceClassName": random.choice(["gpu", "gpu", "fast"])}
    ask |= {"allocationMode": "ExactCount", "count": random.choice([1, 1, 2, 3])}
    if random.random() < 0.2:
        ask |= {"allocationMode": "All", "count": 0}
    if random.random() < 0.2:
        ask["tolerations"] = [{"key": "bad", "operator": "Exists"}]
    if random.random() < 0.25:
        ask["capacity"] = {"requests": {"memory": random.choice(["1Gi", "5Gi"])}}
    if random.random() < 0.1:
        ask["selectors"] = [{"cel": {"expression": BREAKS}}]
    if allows_admin and random.random() < 0.1:
        ask["adminAccess"] = True
    return ask


def make_request(random: Random, name: str) -> dict[str, Any]:
    if random.random() < 0.7:
        return {"name": name, "exactly": make_ask(random, True)}
    subs = [{"name": f"s{at}", **make_ask(random, False)} for at in range(2)]
    return {"name": name, "firstAvailable": subs}


def make_plan(random: Random, plans: ClaimPlans, nodes: Nodes) -> ClaimsPlan:
    specs = []
    for number in range(random.choice([1, 1, 2])):
        requests = [make_request(random, f"r{at}") for at in range(random.choice([1, 1, 2, 3]))]
        limits: list[dict[str, Any]] = []
        if random.random() < 0.4:
            kind = random.choice(["matchAttribute", "matchAttribute", "distinctAttribute"])
            limits = [{kind: random.choice([NUMA, MODEL])}]
            if random.random() < 0.3:
                limits[0]["requests"] = ["r0"]
        specs.append(claim(f"c{number}", *requests, constraints=limits).spec)
    return plans.plan(tuple(specs), nodes.devices.classes)


# Comparing


def search_plainly(claims: tuple[CompiledClaim, ...], nodes: Nodes, row: int) -> Plain:
    """What a node gets by itself. Raises SearchTooLongError."""
    views = nodes.device_groups.views(nodes.name(row), row)
    pools = [(view, nodes.devices.use.state(view)) for view in views]
    try:
        picks = PlainSearch(claims, pools).run()
    except SearchError as error:
        return error.text
    if picks is None:
        return None
    return [
        (
            each.claim,
            each.ask.name,
            views[each.pool].key[1],
            views[each.pool].names[each.place],
            each.amounts,
        )
        for each in picks
    ]


def find_by_group(plan: ClaimsPlan, nodes: Nodes, row: int) -> Plain:
    outcome = plan.outcome_on(nodes.device_groups, row)
    if outcome.found is AllocationFound.ERROR:
        return outcome.error
    if outcome.found is not AllocationFound.DEVICES:
        return None
    views = nodes.device_groups.views(nodes.name(row), row)
    return [
        (
            each.claim,
            each.ask.name,
            views[each.pool].key[1],
            views[each.pool].names[each.place],
            each.amounts,
        )
        for each in outcome.picks
    ]


def compare(plan: ClaimsPlan, nodes: Nodes, counts: Counter[str]) -> None:
    told = RowOutcomes(plan, nodes.device_groups, nodes.rows)
    gets = told.where(AllocationFound.DEVICES)
    breaks = told.where(AllocationFound.ERROR)
    for at, row in enumerate(nodes.rows.tolist()):
        try:
            expected = search_plainly(plan.claims, nodes, row)
        except SearchTooLongError:
            counts["too long"] += 1
            continue
        found = find_by_group(plan, nodes, row)
        is_error = isinstance(expected, str)
        if is_error:
            # An error names the device as another row of the group sees it.
            assert isinstance(found, str), (found, expected)
        else:
            assert found == expected
        assert (gets[at], breaks[at]) == (isinstance(expected, list), is_error)
        counts["error" if is_error else "nothing" if expected is None else "devices"] += 1


@pytest.mark.parametrize("seed", range(4))
def test_groups_and_short_cuts_find_what_a_plain_search_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_STEPS", 100_000)
    # Numbers of groups are given again soon.
    monkeypatch.setattr(groups, "_MOST_IDLE", seed)
    random, counts = Random(seed), Counter[str]()
    for _ in range(6):
        cluster, plans = Cluster(), ClaimPlans()
        cluster.put_device(device_class())
        cluster.put_device(device_class("fast", FAST))
        for name in ("n3", "n1", "n2"):
            cluster.put_node(node(name))
        like = [make_device(random, at) for at in range(3)]
        pools = random.choice([["n1", "n2", "n3"], ["n1", "n2", "n3", "m", "n1-net", "z"]])
        for name in pools:
            put_pool(random, cluster, name, like)
        kept = [make_plan(random, plans, cluster.nodes) for _ in range(4)]
        for step in range(10):
            # Plans are asked again after a change, with what they remember.
            for plan in (*kept, make_plan(random, plans, cluster.nodes)):
                compare(plan, cluster.nodes, counts)
            if random.random() < 0.3:
                put_pool(random, cluster, random.choice(pools), like)
            else:
                put_use(random, cluster, step % 5, pools)
        check(cluster)
    assert min(counts["devices"], counts["nothing"], counts["error"]) > 10, counts
