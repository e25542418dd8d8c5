"""`moorage plugin new`: the package that it writes works as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.cli.plugin_package import PluginNames
from tests.cli.invoking import Moorage


@pytest.fixture
def moorage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Moorage:
    return Moorage(monkeypatch, capsys)


def read(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def write_and_test(moorage: Moorage, folder: Path, *flags: str) -> Path:
    """Writes a package and runs its tests; returns the module of its plugin."""
    result = moorage("plugin", "new", "RackSlots", "--folder", str(folder), *flags)
    assert result.code == 0
    assert f"{folder}/tests/test_rack_slots.py" in result.out
    assert "-m pytest" in result.out.splitlines()[-1]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "src" / "moorage_rack_slots" / "__init__.py"


def test_the_plain_form_passes_its_tests(moorage: Moorage, tmp_path: Path) -> None:
    plugin = write_and_test(moorage, tmp_path)

    example = (str(tmp_path / "scheduler.yaml"), str(tmp_path / "cluster.yaml"))
    simulated = moorage("simulate", "--plugins", str(plugin), "--config", *example)
    assert "1 placed, 1 pending, 1 node" in simulated.out
    assert not (tmp_path / "deploy").exists()


def test_the_counting_form_passes_its_tests_and_its_manifests_agree(
    moorage: Moorage, tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    plugin = write_and_test(moorage, folder, "--counting")

    (crd,) = read(folder / "deploy" / "crd.yaml")
    role, binding = read(folder / "deploy" / "rbac.yaml")
    (rule,) = role["rules"]
    assert rule["resources"] == [crd["spec"]["names"]["plural"]]
    assert rule["apiGroups"] == [crd["spec"]["group"]]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert crd["metadata"]["name"] == "noderackslots.example.com"
    example = (str(folder / "scheduler.yaml"), str(folder / "cluster.yaml"))
    simulated = moorage("simulate", "--plugins", str(plugin), "--config", *example)
    assert "1 placed, 1 pending, 1 node" in simulated.out


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (("rack-slots",), "'rack-slots': must be a name such as RackSlots"),
        (("RackSlots", "--group", "here"), "--group: 'here' is not a domain name"),
    ],
)
def test_what_cannot_be_written(
    moorage: Moorage, tmp_path: Path, arguments: tuple[str, ...], wrong: str
) -> None:
    result = moorage("plugin", "new", *arguments, "--folder", str(tmp_path / "made"))

    assert result.code == 2
    assert wrong in result.err
    assert not (tmp_path / "made").exists()


def test_nothing_is_overwritten(moorage: Moorage, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    result = moorage("plugin", "new", "RackSlots", "--folder", str(tmp_path))

    assert result.code == 2
    assert "exists already" in result.err


@pytest.mark.parametrize(
    ("plugin", "noun", "plural"),
    [("RackSlots", "rack slots", "noderackslots"), ("GPUBus", "gpu bus", "nodegpubus")],
)
def test_names(plugin: str, noun: str, plural: str) -> None:
    names = PluginNames(plugin, "example.com").replacements

    assert (names["noun"], names["plural"]) == (noun, plural)
