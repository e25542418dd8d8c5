"""Prints how large files and functions are: `python -m tools.house [FOLDER]`.

It counts files, lines per file and per function, files that only one other file imports, and names
that occur twice. Compare the output of two commits to see what a change did to the layout.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_LONGEST_SHOWN = 5

# Every package has these.
_SHARED_NAMES = frozenset(("__init__.py", "__main__.py"))


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long files or functions are."""

    count: int
    median: float
    p90: int
    longest: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Sizes:
        ordered = sorted(lengths)
        return cls(
            len(ordered), statistics.median(ordered), ordered[len(ordered) * 9 // 10], ordered[-1]
        )


@dataclass(slots=True)
class House:
    """What was counted."""

    #: Lines by file, and by `file:line name` of a function.
    files: dict[str, int] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)
    one_importer: list[str] = field(default_factory=list)
    #: In more than one module.
    class_names: list[str] = field(default_factory=list)
    file_names: list[str] = field(default_factory=list)

    @property
    def file_sizes(self) -> Sizes:
        return Sizes.of(list(self.files.values()))

    @property
    def function_sizes(self) -> Sizes:
        return Sizes.of(list(self.functions.values()))


def survey(folder: Path) -> House:
    """Counts the Python files below a folder of source, such as `src`."""
    paths = sorted(folder.rglob("*.py"))
    modules = {_module(path, folder) for path in paths}
    house = House()
    classes: Counter[str] = Counter()
    importers: Counter[str] = Counter()
    for path in paths:
        text = path.read_text()
        tree = ast.parse(text)
        house.files[str(path)] = text.count("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                house.functions[f"{path}:{node.lineno} {node.name}"] = lines
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name] += 1
        importers.update(set(_imports(tree, path, folder)) & modules)
    house.one_importer = sorted(name for name in modules if importers[name] == 1)
    house.class_names = sorted(name for name, count in classes.items() if count > 1)
    names = Counter(path.name for path in paths if path.name not in _SHARED_NAMES)
    house.file_names = sorted(name for name, count in names.items() if count > 1)
    return house


def _module(path: Path, folder: Path) -> str:
    return ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")


def _imports(tree: ast.Module, path: Path, folder: Path) -> Iterator[str]:
    """Yields the names that a file imports, both as modules and as names of modules."""
    package = list(path.relative_to(folder).with_suffix("").parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            head = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*head, node.module] if node.module else head)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def describe(house: House) -> str:
    """Writes the table."""
    lines = ["| | count | median | p90 | max |", "|---|---:|---:|---:|---:|"]
    for title, sizes in (
        ("lines per file", house.file_sizes),
        ("lines per function", house.function_sizes),
    ):
        row = f"{sizes.count} | {sizes.median:.0f} | {sizes.p90} | {sizes.longest}"
        lines.append(f"| {title} | {row} |")
    share = len(house.one_importer) / len(house.files)
    lines += [
        "",
        f"files with one importer: {len(house.one_importer)} ({share:.0%})",
        f"public class names in more than one module: {len(house.class_names)}"
        f"{_list(house.class_names)}",
        f"file names that occur more than once: {len(house.file_names)}{_list(house.file_names)}",
        "",
        "longest:",
    ]
    for lengths in (house.files, house.functions):
        longest = sorted(lengths.items(), key=lambda each: -each[1])[:_LONGEST_SHOWN]
        lines += [f"{count:6} lines  {name}" for name, count in longest]
    return "\n".join(lines)


def _list(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


if __name__ == "__main__":
    print(describe(survey(Path(sys.argv[1] if len(sys.argv) > 1 else "src"))))
