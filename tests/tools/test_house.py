"""The tool that counts the code and what may not grow in it, and the ceilings of this code."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from tools import house
from tools.house import CORE, FIGURES, KEPT_ANSWERS, OTHER_READERS, Figure, House

ROOT = Path(__file__).parents[2]

FILES = {
    "moorage/__init__.py": '"""A package."""\nfrom .cluster import log\n',
    "moorage/cluster/__init__.py": "",
    "moorage/cluster/log.py": '''
# A comment.
_MOST, _FACTOR = 2**10, 3
_UNIT = 7


class Log:
    """Of changes.

    In order.
    """

    LIMIT = 64

    def since(self, position):
        text = """
        This is code."""
        return position < 2 * _MOST or position > 1 or _FACTOR * _UNIT
''',
    "moorage/cluster/row_view.py": "def read(log):\n    return log.since(0)\n",
    "moorage/testing/laws.py": "def read(log):\n    return log.since(0)\n",
    "moorage/engine/late.py": """
from moorage.cluster.log import _MOST, Log
from moorage.cluster.row_view import find_changes

def follow(nodes, tasks, values):
    changed, since = find_changes(nodes.changes, 0), nodes.changes.since
    tasks.gather(values)
    keep(_MOST, Log.LIMIT)
    return min(40, len(values)) == 0
""",
    "moorage/framework/plugin.py": """
class Plugin:
    name: str
    reads = 0
    scope: int = 0
    def is_quick(self): ...

class Filter(Plugin, Generic[F]):
    def filter(self): ...
    def recalls(self): ...

class Answer:
    def promises(self): ...
""",
}


@pytest.fixture(name="small")
def make_small_house(tmp_path: Path) -> House:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return House(tmp_path)


def test_blank_lines_comments_and_docstrings_are_no_code(small: House) -> None:
    assert small.count_code(["moorage/cluster/log.py"]) == 8
    assert small.count_code(["moorage/cluster"]) == 10
    assert small.count_code(["moorage/clu"]) == 0


def test_reading_the_log_is_left_to_row_views(small: House) -> None:
    assert small.find_reads() == ["moorage/engine/late.py:6"]
    assert small.find_positions() == ["moorage/engine/late.py:6"]


def test_thresholds_are_numbers_that_something_is_compared_with(small: House) -> None:
    assert small.find_thresholds(["moorage/cluster"]) == [
        "moorage.cluster.log._MOST 1024",
        "moorage.cluster.log:18 2",
    ]
    assert small.find_thresholds(["moorage/engine"]) == [
        "moorage.cluster.log.LIMIT 64",
        "moorage.cluster.log._MOST 1024",
        "moorage.engine.late:9 40",
    ]


def test_what_a_plugin_has_is_a_declaration_unless_it_is_known_to_decide(small: House) -> None:
    assert small.find_declarations() == ["reads", "scope", "is_quick", "recalls"]


def test_a_figure_above_its_ceiling_ends_the_command_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "one.py").write_text("def do():\n    return 1\n")
    monkeypatch.setattr(sys, "argv", ["house", str(tmp_path), "--list"])
    for count, code in ((3, 1), (2, 0), (1, 0)):
        found = ["one", "two", "three"][:count]
        figure = Figure("things", 1, 2, partial(lambda found, _: found, found))
        monkeypatch.setattr(house, "FIGURES", (figure,))

        assert house.main() == code
        told = capsys.readouterr()
        assert f"| things | {count} | 2 | 1 |" in told.out
        assert ("three" in told.out) == (count == 3)
        assert ("lower the ceiling to 1" in told.err) == (count == 1)


@pytest.fixture(name="own", scope="module")
def make_own_house() -> House:
    return House(ROOT / "src")


@pytest.mark.parametrize("figure", FIGURES, ids=lambda each: each.title)
def test_no_figure_is_above_its_ceiling(figure: Figure, own: House) -> None:
    found = figure.find(own)

    assert (found if isinstance(found, int) else len(found)) <= figure.ceiling
    assert figure.goal <= figure.ceiling


def test_what_follows_the_log_is_counted_among_the_kept_answers(own: House) -> None:
    readers = {
        each.place for each in own.within(CORE) if "moorage.cluster.row_view" in each.imports()
    }

    assert readers - {each.place for each in own.within(KEPT_ANSWERS)} <= OTHER_READERS.keys()
