"""The tables in the docs say what the code says, and what was measured."""

from __future__ import annotations

from functools import reduce
from operator import or_

import pytest

from moorage.cluster import Change
from tests.registered import PLUGINS
from tools.doc_tables import OPERATIONS, ROOT, TABLES, fill_tables


@pytest.mark.parametrize("name", TABLES)
def test_tables_say_what_they_are_made_from(name: str) -> None:
    page = (ROOT / name).read_text()
    assert page == fill_tables(name, page), "run `make docs`"


def test_every_kind_of_change_that_a_plugin_reads_is_an_operation_of_the_table() -> None:
    told = reduce(or_, OPERATIONS.values())
    reads = reduce(or_, (plugin.reads for plugin in PLUGINS if plugin.reads != Change.ALL))
    assert reads & ~told == Change.NONE
