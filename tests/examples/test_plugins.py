"""The example plugins: their own tests, and a simulation with each as an installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
PLUGINS = sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml"))


def run(*command: str, folder: Path, path: list[Path]) -> subprocess.CompletedProcess[str]:
    """Runs a Python module in a folder, with more places to import from."""
    places = os.pathsep.join(map(str, path))
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def install(example: Path, site: Path) -> None:
    """Writes what pip would write about a package, so that its entry points are found."""
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(about)
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def explain(name: str, pod: str, site: Path) -> dict[str, Any]:
    """What is said of a pod of an example's cluster, with the example's configuration."""
    example = EXAMPLES / name
    install(example, site)
    arguments = ("explain", pod, "--config", "scheduler.yaml", "--output", "json", "cluster.yaml")
    done = run("moorage", *arguments, folder=example, path=[site, example / "src"])
    assert done.returncode == 1, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def simulate(name: str, site: Path) -> dict[str, Any]:
    """The outcome of simulating an example's cluster with the example's configuration."""
    example = EXAMPLES / name
    install(example, site)
    arguments = ("simulate", "--config", "scheduler.yaml", "--output", "json", "cluster.yaml")
    done = run("moorage", *arguments, folder=example, path=[site, example / "src"])
    assert done.returncode == 1, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def placed(outcome: dict[str, Any]) -> dict[str, str]:
    return {each["pod"]: each["node"] for each in outcome["placements"]}


def why(outcome: dict[str, Any]) -> dict[str, str]:
    """Per pending pod what the filters said; the words of preemption are cut off."""
    return {each["pod"]: each["message"].split(".", 1)[0] for each in outcome["pending"]}


@pytest.mark.parametrize("name", PLUGINS)
def test_its_own_tests_pass(name: str) -> None:
    done = run(
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        folder=EXAMPLES / name,
        path=[],
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_hardware_generation_decides_in_a_simulation(tmp_path: Path) -> None:
    outcome = simulate("hardware-generation", tmp_path)

    assert placed(outcome) == {"anywhere": "new", "recent": "new"}
    unknown = "1 node(s) have no hardware generation"
    older = "2 node(s) are of an older hardware generation"
    assert why(outcome) == {"future": f"0/3 nodes are available: {unknown}, {older}"}


def test_team_nodes_decides_in_a_simulation(tmp_path: Path) -> None:
    outcome = simulate("team-nodes", tmp_path)

    assert placed(outcome) == {"index": "search-1", "ledger": "payments-1"}
    owners = "1 node(s) belong to payments, 1 node(s) belong to search"
    assert why(outcome) == {"stray": f"0/2 nodes are available: {owners}"}


def test_team_nodes_advises_in_an_explanation(tmp_path: Path) -> None:
    told = explain("team-nodes", "stray", tmp_path)

    suggested = {each["remedy"]: (each["kind"], each["nodes"]) for each in told["suggestions"]}
    assert suggested == {
        "its label team were payments": ("plugin", ["payments-1"]),
        "its label team were search": ("plugin", ["search-1"]),
    }
