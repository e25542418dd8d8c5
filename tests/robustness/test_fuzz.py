"""Whatever an API server accepts: no exception, no wrong sum, no difference, no room lost."""

from __future__ import annotations

import pytest

from tests.exactness.test_together import everything
from tests.robustness import fuzz


@pytest.mark.parametrize("first", range(0, 16, 4))
def test_hostile_streams(first: int) -> None:
    """`make soak` runs many more of them."""
    told = [fuzz.run(seed, everything()) for seed in range(first, first + 4)]

    # Otherwise they would prove nothing.
    assert sum(each.events for each in told) > 400
    assert sum(each.decisions for each in told) > 200
