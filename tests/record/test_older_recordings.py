"""Recordings that earlier versions made are decided again as they were."""

from __future__ import annotations

from pathlib import Path

from moorage.record.whole_replay import replay

RECORDINGS = Path(__file__).parent / "recordings"


def test_a_recording_of_an_earlier_version_is_decided_alike() -> None:
    done = replay([RECORDINGS / "run"])

    assert len(done.segments) == 4
    assert done.counts.difference_count == 0
    # That version tried every pod, also behind a like one that had failed.
    assert (done.decisions, done.counts.untried_count) == (200, 56)


def test_it_can_be_read_from_the_middle() -> None:
    done = replay(sorted(RECORDINGS.glob("run.*"))[1:])

    assert done.placements_only
    assert done.decisions > 100
