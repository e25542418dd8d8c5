"""Plugins of other packages: found by entry point, refused with the package's name."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from moorage.cluster import NodeView
from moorage.engine.registry import GROUP, RegistryError, registry
from moorage.framework.plugin import NodeFilter
from moorage.objects.pod import Pod
from moorage.plugins import BUILTIN
from tests.cli.invoking import Moorage

PLUGINS = "an_out_of_tree_package"


class Odd(NodeFilter):
    """Takes nodes with odd names only."""

    name: ClassVar[str] = "Odd"

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return None if node.name.endswith(("1", "3")) else "node(s) were even"


class Unfinished(NodeFilter):
    name: ClassVar[str] = "Unfinished"


class Nameless(Odd):
    name: ClassVar[str] = ""


class Twin(Odd):
    name: ClassVar[str] = "NodeName"


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType(PLUGINS)
    for each in (Odd, Unfinished, Nameless, Twin):
        setattr(module, each.__name__, each)
    monkeypatch.setitem(sys.modules, PLUGINS, module)

    def install(*values: str) -> None:
        entries = [EntryPoint(f"e{at}", value, GROUP) for at, value in enumerate(values)]
        for entry in entries:
            vars(entry)["dist"] = SimpleNamespace(name="odd-plugins")
        monkeypatch.setattr("moorage.engine.registry.entry_points", lambda group: entries)

    return install


def test_builtin_plugins_and_those_of_packages(install: Any) -> None:
    install(f"{PLUGINS}:Odd")

    assert registry() == {**{each.name: each for each in BUILTIN}, "Odd": Odd}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("no_such_module:X", "cannot be loaded: ModuleNotFoundError: No module named "
         "'no_such_module'"),
        (f"{PLUGINS}:X", "cannot be loaded: AttributeError: "
         f"module '{PLUGINS}' has no attribute 'X'"),
        ("json:dumps", "json:dumps is not a Plugin class"),
        (f"{PLUGINS}:Nameless", f"{PLUGINS}:Nameless has no name"),
        (f"{PLUGINS}:Unfinished", f"{PLUGINS}:Unfinished does not define filter_node"),
        (f"{PLUGINS}:Twin", "there is a plugin 'NodeName' already"),
    ],
)  # fmt: skip
def test_a_broken_plugin_is_told_with_its_package(
    install: Any, moorage: Moorage, value: str, told: str
) -> None:
    install(value)
    expected = f"package odd-plugins: entry point e0 of moorage.plugins: {told}"

    with pytest.raises(RegistryError) as caught:
        registry()
    result = moorage("simulate", "examples/demo")

    assert str(caught.value) == expected
    assert (result.code, result.err) == (2, f"{expected}\n")


def test_an_installed_plugin_is_enabled_in_the_configuration(
    install: Any, moorage: Moorage, tmp_path: Any
) -> None:
    install(f"{PLUGINS}:Odd")
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {enabled: [{name: Odd}]}}}]\n"
    )

    result = moorage("simulate", "examples/demo", "--config", str(config))

    assert "node(s) were even" in result.out
