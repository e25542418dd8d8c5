"""Pods of groups that are evicted one by one: found in columns as they are found unit by unit."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import example, given, settings, strategies as st

from moorage.cluster.pods import LesserPods
from moorage.engine.cycle import decide
from moorage.framework.attempt import Failed
from moorage.objects.pod import Pod
from moorage.objects.selector import LabelSelector, compile_selector
from moorage.objects.workload import PodDisruptionBudget
from moorage.plugins.preemption.preemption_dry_run import DryRun
from moorage.testing.builders import node, pod
from tests.engine.gangs import IN_EACH_VERSION, drive_gangs, gang

pytestmark = IN_EACH_VERSION

RUNNING = st.lists(
    st.tuples(
        st.integers(0, 3),  # which node
        st.sampled_from(["", "", "a", "a", "b", "b", "whole"]),  # which group
        st.integers(0, 3),  # priority
        st.integers(1, 2),  # cpu
        st.sampled_from([0, 0, 0, 1]),  # start; such as start later may have any priority
    ),
    max_size=14,
)


PRIORITIES = {"a": 0, "b": 1, "whole": 1}


class UnitDryRun(DryRun, frozen=True):
    """Looks at all rows unit by unit."""

    def _find_lesser(self, portion: Any) -> LesserPods | None:
        return None


class FullDryRun(UnitDryRun, frozen=True):
    """The same, and whoever leaves together is taken off every row, whatever the filters see."""

    @cached_property
    def in_columns(self) -> bool:
        return False


def place(number: int, case: tuple[int, str, int, int, int]) -> Pod:
    where, group, priority, cpu, start = case
    # Mostly as important as its group.
    spec: dict[str, Any] = {"priority": priority if start else PRIORITIES.get(group, priority)}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return pod(
        f"p{number}",
        node=f"n{where}",
        cpu=cpu,
        labels={"app": group or "none"},
        spec=spec,
        status={"startTime": f"2024-01-01T00:00:{start:02}Z"},
    )


def find(made: type[DryRun], asks: Pod, failed: Failed, driver: Any) -> object:
    engine = driver.engine
    profile, nodes = engine.profiles["default-scheduler"], engine.cluster.nodes
    run = made(profile, asks, failed.pre_filtered, nodes, Counter())
    found = run.candidates(np.sort(nodes.rows), 10)
    return (
        found.rows.tolist(),
        [column.tolist() for column in found.columns],
        [[each.name for each in found.victims(at)] for at in range(len(found.rows))],
        +run.reasons,
    )


@settings(max_examples=60)
@given(RUNNING, st.sampled_from([None, 0, 9]))
# Who leaves another node together with a victim makes no room on this one.
@example([(at, "whole", 1, 2, 0) for at in (0, 1)] + [(at, "", 3, 2, 0) for at in range(4)], None)
def test_columns_agree_with_units(
    running: list[tuple[int, str, int, int, int]], allowed: int | None
) -> None:
    groups = [
        gang(name, 1, priority=priority, is_evicted_whole=name == "whole")
        for name, priority in PRIORITIES.items()
    ]
    nodes = [node(f"n{number}", cpu=4, pods=9) for number in range(4)]
    selector = compile_selector(LabelSelector(match_labels={"app": "a"}))
    budget = PodDisruptionBudget(
        namespace="default", name="some", selector=selector, disruptions_allowed=allowed or 0
    )
    budgets = [] if allowed is None else [budget]
    driver = drive_gangs(*nodes, *groups, *budgets)
    driver.apply(*(place(number, case) for number, case in enumerate(running)))
    asks = pod("asks", cpu=4, spec={"priority": 2})
    outcome = decide(driver.engine.profiles["default-scheduler"], asks, driver.engine.cluster.nodes)

    if isinstance(outcome, Failed):
        found = find(DryRun, asks, outcome, driver)
        assert found == find(UnitDryRun, asks, outcome, driver)
        assert found == find(FullDryRun, asks, outcome, driver)
