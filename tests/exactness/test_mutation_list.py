"""The list of mutations fits the code: each piece occurs once. `tools.mutations` makes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.exactness.mutation_list import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_each_mutation_fits_its_file(mutation: Mutation) -> None:
    assert (ROOT / mutation.path).read_text().count(mutation.old) == 1
    assert mutation.old != mutation.new


def test_there_are_enough_and_each_has_a_name() -> None:
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS) >= 80


def test_what_is_remembered_is_there() -> None:
    known = json.loads((ROOT / "tests/exactness/caught_by.json").read_text())

    assert known.keys() <= {each.name for each in MUTATIONS}
    for caught_by in known.values():
        path, _, test = caught_by.partition("::")
        if test:
            assert f"def {test.partition('[')[0]}(" in (ROOT / path).read_text()
        else:
            assert caught_by.removeprefix("stream ").isdigit()
