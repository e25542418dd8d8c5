"""The locks hold for every Python that the project claims to support."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOWEST = PROJECT["requires-python"].removeprefix(">=")
MINORS = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: 3." in each]
PYTHONS = [*(f"{minor}.0" for minor in MINORS), "3.11.2"]


def pins(name: str, python: str) -> dict[str, str]:
    """Returns the versions that a lock names for a Python on Linux, at most one of a package."""
    found: dict[str, str] = {}
    for line in (ROOT / name).read_text().splitlines():
        if "==" not in line:
            continue
        requirement = Requirement(line.removesuffix("\\"))
        place = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
        if requirement.marker is None or requirement.marker.evaluate(place):
            package = canonicalize_name(requirement.name)
            assert package not in found, f"{name}: {package} twice for Python {python}"
            found[package] = str(requirement.specifier).removeprefix("==")
    return found


def wanted(*extras: str) -> list[Requirement]:
    lines = [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    return [Requirement(line) for line in [*PROJECT["dependencies"], *lines]]


def test_the_lowest_python_is_one_of_the_tested() -> None:
    assert MINORS[0] == LOWEST


@pytest.mark.parametrize("python", PYTHONS)
def test_all_that_is_declared_is_locked(python: str) -> None:
    locked = pins("constraints.txt", python)

    for each in wanted(*PROJECT["optional-dependencies"]):
        assert each.specifier.contains(locked[canonicalize_name(each.name)])


@pytest.mark.parametrize("python", PYTHONS)
def test_the_image_gets_the_versions_that_are_tested(python: str) -> None:
    tested, image = pins("constraints.txt", python), pins("requirements.lock", python)

    assert image.items() <= tested.items()
    assert {canonicalize_name(each.name) for each in wanted()} <= image.keys()
    assert "pytest" not in image


def test_the_image_checks_hashes() -> None:
    entries = (ROOT / "requirements.lock").read_text().split("\n    --hash=sha256:")

    assert len(entries) > len(pins("requirements.lock", PYTHONS[0]))
    assert "--require-hashes --requirement requirements.lock" in (ROOT / "Dockerfile").read_text()
