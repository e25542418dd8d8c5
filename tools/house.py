"""Prints how large the code is, and checks it.

    python -m tools.house           the figures, which may not be above their ceilings
    python -m tools.house --list    what was counted, too

The exit code is 1 if a figure is above its ceiling. Ceilings only go down, to the goal at last.
Code is counted without blank lines, comments and docstrings: explaining costs nothing.
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from tokenize import COMMENT, DEDENT, ENDMARKER, INDENT, NEWLINE, NL
from typing import NamedTuple

from moorage.cluster.changes import Change
from moorage.cluster.facts import WRITERS
from moorage.cluster.view import list_members

from .thresholds import Constants, find_constants, find_thresholds

_CORE_PACKAGES = ("engine", "cluster", "framework", "queue", "plugins", "objects")

#: The core, with the policies wherever they live.
CORE = (*(f"moorage/{name}" for name in _CORE_PACKAGES), "moorage_policies")

#: What keeps, ranks or invalidates answers, wherever it lies, and why it is here.
KEPT_ANSWERS = {
    "moorage/engine/classes": "answers by plugin and ask, their sums, ranking and failures",
    "moorage/cluster/changes.py": "the log that says what is out of date",
    "moorage/cluster/row_view.py": "what follows the log",
    "moorage/cluster/derived.py": "values kept until labels, taints or nodes change",
    "moorage/engine/extenders/survey.py": "answers kept while extenders are asked",
    "moorage/engine/gangs/key_domains.py": "sums of a row view over domains",
    "moorage/engine/gangs/member_fits.py": "how many members rows take, kept between gangs",
    "moorage/framework/pod_trace.py": "signatures for plugins that have none",
    "moorage/framework/signing.py": "signatures, remembered by what was read to make them",
    "moorage/plugins/claimed_gpus.py": "counts of pods by row",
    "moorage/plugins/dynamic_resources/device_counts.py": "counts of devices by row",
    "moorage/plugins/preemption/known_victims.py": "victims by row, kept from pod to pod",
}

#: Modules of the core that follow the log and keep no answers.
OTHER_READERS = {
    "moorage/engine/explain/explain_pod.py": "begins again if the cluster changes meanwhile",
}

#: Members of plugins that decide, act or describe. Any other is a declaration about what a plugin
#: reads, or how its answers may be kept.
DECIDING = frozenset(
    (
        *("name", "Args", "create", "create_sharing", "see_cluster", "remarks", "metrics"),
        *("wakeups", "key", "pre_enqueue", "pre_filter", "add_pod", "remove_pod", "filter"),
        *("filter_node", "recheck", "post_filter", "propose", "choose", "pre_score", "score"),
        *("score_node", "rescore", "normalize", "writes", "reserve", "reserves_for"),
        *("unreserve", "attach", "permit", "prepare", "is_prepared", "pre_bind", "bind"),
        *("post_bind",),
    )
)

_FOLLOWING = ("moorage/cluster/row_view.py", "moorage/testing")
_PLUGINS = ("moorage/framework/plugin.py",)

# How the log of changes is read, how variables that hold it end, and what holds a position in it.
_READING, _LOGS = ("since", "gather", "unite_since"), ("log", "changes")
_READERS = ("find_changes",)

_NO_CODE = frozenset((COMMENT, NL, NEWLINE, INDENT, DEDENT, ENDMARKER))
_LONGEST_SHOWN = 5


class Module:
    """A file of source."""

    def __init__(self, path: Path, folder: Path) -> None:
        #: Its place below the folder, such as `moorage/cluster/view.py`.
        self.place = path.relative_to(folder).as_posix()
        self.name = self.place.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self.text = path.read_text()

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """The nodes of its syntax tree; the first is the module."""
        return tuple(ast.walk(ast.parse(self.text)))

    def is_in(self, places: Iterable[str]) -> bool:
        """Whether it is one of some files, or in one of some folders."""
        return any(f"{self.place}/".startswith(f"{each}/") for each in places)

    @cached_property
    def code_lines(self) -> int:
        """How many lines are not blank, and no comments or docstrings."""
        lines: set[int] = set()
        for each in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if each.type not in _NO_CODE:
                lines.update(range(each.start[0], each.end[0] + 1))
        return len(lines.difference(*map(_docstring, self.nodes)))

    def imports(self) -> set[str]:
        """Returns the names that it imports, both as modules and as names of modules."""
        package = self.place.split("/")[:-1]
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                head = package[: len(package) - node.level + 1] if node.level else []
                module = ".".join([*head, node.module] if node.module else head)
                found.update((module, *(f"{module}.{alias.name}" for alias in node.names)))
        return found


def _docstring(node: ast.AST) -> range:
    """Returns the lines of a node's docstring."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return range(0)
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    return range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


class House:
    """The modules below a folder of source, such as `src`."""

    def __init__(self, folder: Path) -> None:
        self.modules = [Module(path, folder) for path in sorted(folder.rglob("*.py"))]

    def within(self, places: Iterable[str]) -> list[Module]:
        """Returns the modules in some files and folders."""
        return [each for each in self.modules if each.is_in(places)]

    def count_code(self, places: Iterable[str]) -> int:
        return sum(each.code_lines for each in self.within(places))

    def find_reads(self) -> list[str]:
        """Returns where the log of changes is read, other than by a `RowView`."""
        return [
            where
            for where, node in self._walk_beside_row_view(_READING)
            if isinstance(node, ast.Attribute)
            and node.attr in _READING
            and ast.unparse(node.value).endswith(_LOGS)
        ]

    def find_positions(self) -> list[str]:
        """Returns where something other than a `RowView` keeps its position in the log."""
        return [
            where
            for where, node in self._walk_beside_row_view(_READERS)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _READERS
        ]

    def _walk_beside_row_view(self, words: Iterable[str]) -> Iterator[tuple[str, ast.AST]]:
        """Yields the nodes of modules with some words, each with its place.

        `RowView` itself, and what tests of plugins use, are left out.
        """
        for module in self.modules:
            if any(each in module.text for each in words) and not module.is_in(_FOLLOWING):
                for node in module.nodes:
                    yield f"{module.place}:{getattr(node, 'lineno', 0)}", node

    def find_declarations(self) -> list[str]:
        """Returns what a plugin can declare about what it reads and how its answers are kept."""
        plugins = {"Plugin"}
        found: dict[str, None] = {}
        for each in (node for module in self.within(_PLUGINS) for node in module.nodes):
            if isinstance(each, ast.ClassDef):
                bases = {ast.unparse(base).partition("[")[0] for base in each.bases}
                if each.name in plugins or bases & plugins:
                    plugins.add(each.name)
                    found.update(dict.fromkeys(_members(each)))
        return [each for each in found if each not in DECIDING and not each.startswith("_")]

    def find_thresholds(self, places: Iterable[str]) -> list[str]:
        """Returns the numbers that sizes and counts are compared with, each once."""
        return sorted(
            {
                found
                for each in self.within(places)
                for found in find_thresholds(each.name, each.nodes, self._constants)
            }
        )

    @cached_property
    def _constants(self) -> Constants:
        return find_constants({each.name: each.nodes for each in self.within(CORE)})


def _members(owner: ast.ClassDef) -> Iterator[str]:
    for each in owner.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each.name
        elif isinstance(each, ast.AnnAssign):
            yield ast.unparse(each.target)
        elif isinstance(each, ast.Assign):
            yield from map(ast.unparse, each.targets)


def find_reachable() -> list[str]:
    """Returns the members that a plugin which reads only labels can reach."""
    return list_members(int(Change.LABELS))


class Figure(NamedTuple):
    """What is counted, how many there may be at last, and how many there may be now."""

    title: str
    goal: int
    #: Lowered with the figure, until it is the goal.
    ceiling: int
    #: Returns what is counted, or how much of it there is.
    find: Callable[[House], Sequence[str] | int]


_DECIDING_PACKAGES = ("moorage/engine", "moorage/cluster", "moorage/queue")

FIGURES = (
    Figure("code of the core", 29_000, 30_752, lambda house: house.count_code(CORE)),
    Figure("code of kept answers", 2_000, 2_826, lambda house: house.count_code(KEPT_ANSWERS)),
    Figure("reads of the log beside RowView", 0, 0, House.find_reads),
    Figure("positions in the log beside RowView", 0, 0, House.find_positions),
    Figure("thresholds of kept answers", 12, 16, lambda house: house.find_thresholds(KEPT_ANSWERS)),
    Figure(
        "thresholds of engine, cluster, queue",
        70,
        70,
        lambda house: house.find_thresholds(_DECIDING_PACKAGES),
    ),
    Figure("declarations of a plugin", 6, 6, House.find_declarations),
    Figure("members that reading labels shows", 15, 15, lambda _: find_reachable()),
    Figure(
        "writers among them", 0, 0, lambda _: [each for each in find_reachable() if each in WRITERS]
    ),
)


def describe_code(house: House) -> Iterator[str]:
    """Yields the code per package."""
    lines: Counter[str] = Counter()
    for each in house.modules:
        lines["/".join(each.place.split("/")[:-1][:2])] += each.code_lines
    yield from ("| package | lines of code |", "|---|---:|")
    yield from (f"| {name} | {count:,} |" for name, count in sorted(lines.items()))
    yield f"| all | {lines.total():,} |"


def describe_sizes(house: House) -> Iterator[str]:
    """Yields how long files and functions are, and how many files have one importer."""
    files = {each.place: each.text.count("\n") for each in house.modules}
    functions = {
        f"{module.place}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module in house.modules
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    yield from ("| lines per | count | median | p90 | max |", "|---|---:|---:|---:|---:|")
    for title, lengths in (("file", files), ("function", functions)):
        ordered = sorted(lengths.values())
        p90, median = ordered[len(ordered) * 9 // 10], statistics.median(ordered)
        yield f"| {title} | {len(ordered)} | {median:.0f} | {p90} | {ordered[-1]} |"
    imported = Counter(name for each in house.modules for name in each.imports())
    alone = sum(imported[each.name] == 1 for each in house.modules)
    yield from ("", f"files with one importer: {alone} ({alone / len(files):.0%})", "", "longest:")
    for lengths in (files, functions):
        longest = sorted(lengths.items(), key=lambda each: -each[1])[:_LONGEST_SHOWN]
        yield from (f"{count:6} lines  {name}" for name, count in longest)


def main() -> int:
    """Prints everything; returns 1 if a figure is above its ceiling."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("src"))
    parser.add_argument("--list", action="store_true", help="print what was counted, too")
    asked = parser.parse_args()
    house, code = House(asked.folder), 0
    print(*describe_sizes(house), "", *describe_code(house), "", sep="\n")
    print("| figure | now | ceiling | goal |", "|---|---:|---:|---:|", sep="\n")
    for title, goal, ceiling, find in FIGURES:
        found = find(house)
        now = found if isinstance(found, int) else len(found)
        print(f"| {title} | {now:,} | {ceiling:,} | {goal:,} |")
        if now > ceiling:
            print(f"{title}: {now:,} are more than {ceiling:,}", file=sys.stderr)
            code = 1
        elif now < ceiling > goal:
            print(f"{title}: lower the ceiling to {max(now, goal):,}", file=sys.stderr)
        if asked.list and not isinstance(found, int):
            print(*(f"  {each}" for each in found), sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
