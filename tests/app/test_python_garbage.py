"""Garbage is looked for rarely once the cluster is known, and as before in the end."""

from __future__ import annotations

import gc

import pytest

from moorage.app.python_garbage import freeze_objects, unfreeze_objects


@pytest.mark.usefixtures("real_unfreeze")
def test_what_is_known_is_left_alone_until_the_end() -> None:
    # Another test may have settled it.
    unfreeze_objects()
    before = gc.get_threshold()
    try:
        freeze_objects()
        assert gc.get_freeze_count()
        assert gc.get_threshold()[0] > before[0]
    finally:
        unfreeze_objects()

    assert not gc.get_freeze_count()
    assert gc.get_threshold() == before
