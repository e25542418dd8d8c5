"""Every placement of a scheduler that decides as Moorage does is explained, whatever is late."""

from __future__ import annotations

from random import Random

import pytest

from moorage.world.shadow_judge import Shadow
from moorage.world.shadow_report import Agreement
from tests.explain.building import engine
from tests.world.other_scheduler import OtherScheduler, SharedCluster


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("priorities", [(0,), (0, 0, 10)], ids=["one priority", "two priorities"])
def test_a_placement_is_best_in_a_state_that_the_other_may_have_seen(
    seed: int, priorities: tuple[int, ...]
) -> None:
    dice = Random(seed)
    shadow = Shadow(engine(), lambda: 0.0)
    SharedCluster(shadow, OtherScheduler(engine(), dice), dice, priorities=priorities).run(300)
    report = shadow.report()

    assert [each for each in report.differences if not Agreement(each.agreement).is_best] == []
    assert all(each.reason for each in report.differences)
    # The dice made it hard: many were not best in the state in which their binding was seen.
    assert shadow.counts[Agreement.MOVED] > 5


def test_a_scheduler_that_decides_otherwise_is_found_out() -> None:
    """One that takes any node that is feasible is not excused by what may have been late."""
    dice = Random(1)
    shadow = Shadow(engine(), lambda: 0.0)
    other = OtherScheduler(engine(), dice, takes_any=True)
    SharedCluster(shadow, other, dice).run(120)
    report = shadow.report()

    assert report.by_agreement[Agreement.LOWER] > report.placed / 3
