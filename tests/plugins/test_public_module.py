"""`moorage.plugin` has what plugins need, and no more."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage import plugin

ROOT = Path(__file__).parents[2]
PUBLIC = frozenset(plugin.__all__)

#: Pages and plugins that show how the names are used.
USERS = [
    ROOT / "docs" / "writing-a-plugin.md",
    ROOT / "docs" / "scheduler-cache-extension.md",
    ROOT / "docs" / "permits.md",
    *sorted((ROOT / "examples" / "plugins").glob("*/src/*/*.py")),
    ROOT / "examples" / "tutorial" / "new_nodes_only.py",
    *sorted((ROOT / "src/moorage/cli/plugin_template").glob("*/src/__init__.py.txt")),
]
PLUGINS = [each for each in USERS if each.suffix != ".md"]
POLICIES = sorted((ROOT / "src" / "moorage_policies").rglob("*.py"))

#: What authors make classes of.
BASES = (plugin.Plugin, plugin.PendingPermits, plugin.Handle, plugin.Ledger)

# Of typing, numpy and collections.abc; and what authors pass on without a look at its type.
FOREIGN = {"Any", "Hashable", "Iterable", "Iterator", "Mapping", "NDArray", "None", "Self"}
FOREIGN |= {"Sequence", "ExtendedNode"}

WORD = re.compile(r"\b[A-Za-z]\w+\b")


def find_methods() -> Iterator[tuple[str, object]]:
    """Yields the methods that authors override, with what they get and return."""
    for name in plugin.__all__:
        item = getattr(plugin, name)
        if inspect.isclass(item) and issubclass(item, BASES):
            for method, found in inspect.getmembers(item, inspect.isroutine):
                if method == "__iter__" or not method.startswith("_"):
                    yield f"{name}.{method}", found


def find_types(method: object) -> set[str]:
    annotations = getattr(method, "__annotations__", {})
    words = {word for each in annotations.values() for word in WORD.findall(str(each))}
    return {word for word in words if word[0].isupper()} - FOREIGN


def test_the_types_of_extension_points_are_public() -> None:
    methods = list(find_methods())
    absent = {(name, each) for name, it in methods for each in find_types(it) - PUBLIC}

    assert len(methods) > 100
    assert not absent


def test_every_name_is_used_by_a_page_a_plugin_or_an_extension_point() -> None:
    used = {word for file in (*USERS, *POLICIES) for word in WORD.findall(file.read_text())}
    used |= {each for _, method in find_methods() for each in find_types(method)}

    assert PUBLIC - used == set()


@pytest.mark.parametrize("file", PLUGINS, ids=lambda file: str(file.relative_to(ROOT)))
def test_plugins_import_the_public_module_alone(file: Path) -> None:
    tree = ast.parse(re.sub(r"@(\w+)@", r"\1", file.read_text()))
    found = [each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]

    assert "moorage.plugin" in found
    assert {each for each in found if each and each.partition(".")[0] == "moorage"} == {
        "moorage.plugin"
    }
