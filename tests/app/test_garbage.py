"""Garbage is looked for rarely once the cluster is known, and as before in the end."""

from __future__ import annotations

import gc

from mooring.app.garbage import settle_garbage, unsettle_garbage


def test_what_is_known_is_left_alone_until_the_end() -> None:
    # Another test may have settled it.
    unsettle_garbage()
    before = gc.get_threshold()
    try:
        settle_garbage()
        assert gc.get_freeze_count()
        assert gc.get_threshold()[0] > before[0]
    finally:
        unsettle_garbage()

    assert not gc.get_freeze_count()
    assert gc.get_threshold() == before
