"""Whole simulations, as a user sees them. `--update-golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.cli.simulate_text import write_tables
from moorage.simulate.loading import load
from moorage.simulate.simulation import simulate
from tests.simulate.inputs import engine

FOLDER = Path(__file__).parent / "golden"

# More than this nobody reads in a review.
_LONGEST = 60

SCENARIOS = {
    "demo": Path("examples/demo"),
    "volumes": Path("examples/volumes"),
    "mpi-workers": Path("examples/coexist-policy/mpi-workers.yaml"),
    "database": Path("examples/coexist-policy/database.yaml"),
    **{path.stem: path for path in sorted(FOLDER.glob("*.yaml"))},
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_golden(name: str, update_golden: bool) -> None:
    given = load([str(SCENARIOS[name])])
    notes = "".join(f"note: {note}\n" for note in given.notes)
    text = f"{notes}{write_tables(simulate(engine(), given.objects), wide=True)}\n"
    path = FOLDER / f"{name}.txt"
    if update_golden:
        path.write_text(text)

    assert text == path.read_text()
    assert len(text.splitlines()) <= _LONGEST


def test_every_transcript_has_its_scenario() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(SCENARIOS)
