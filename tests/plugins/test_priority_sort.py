"""PrioritySort."""

from __future__ import annotations

import pytest

from moorage.plugins.priority_sort import PrioritySort
from tests.builders import pod


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((7, 2.0), (3, 1.0), id="the higher priority"),
        pytest.param((3, 1.0), (3, 2.0), id="of equals the earlier"),
        pytest.param((1, 2.0), (None, 1.0), id="no priority is zero"),
        pytest.param((None, 2.0), (-1, 1.0), id="and zero is more than negative"),
    ],
)
def test_who_comes_first(first: tuple[int | None, float], second: tuple[int | None, float]) -> None:
    keys = [
        PrioritySort().key(pod(spec={"priority": priority}), timestamp)
        for priority, timestamp in (first, second)
    ]

    assert keys == sorted(keys)
    assert keys[0] != keys[1]
