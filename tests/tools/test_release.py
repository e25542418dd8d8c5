"""What a release is made of: the same bytes each time, and nothing that lies around."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import moorage
from tests.programs import need_program, needs_program
from tools.release import (
    ReleaseError,
    build,
    check_tag,
    expect_equal,
    read_version,
    write_sums,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project with one module, and with what users leave behind in its folders."""
    folder = tmp_path / "project"
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints.txt"):
        folder.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder)
    for name, text in (
        ("src/moorage/__init__.py", (ROOT / "src/moorage/__init__.py").read_text()),
        ("tests/test_it.py", ""),
        ("examples/tutorial/worker.yaml", "a: 1\n"),
        ("kubeconfig", "token: secret\n"),
        ("examples/tutorial/kubeconfig", "token: secret\n"),
        ("moorage.rec.000001", "names of a cluster"),
        ("notes.txt", "private"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.skipif(find_spec("hatchling") is None, reason="needs hatchling")
def test_builds_are_equal_and_have_what_is_meant_to_be_in_them(
    project: Path, tmp_path: Path
) -> None:
    first = build(project, tmp_path / "first", "1700000000")
    # Files are as new as their checkout; that must make no difference.
    (project / "README.md").touch()
    again = build(project, tmp_path / "again", "1700000000")
    expect_equal(first, again)

    name = f"moorage-{moorage.__version__}"
    assert [path.name for path in first] == [f"{name}-py3-none-any.whl", f"{name}.tar.gz"]
    with tarfile.open(first[1]) as content:
        names = {each.name.removeprefix(f"{name}/") for each in content}
    assert {"README.md", "tests/test_it.py", "examples/tutorial/worker.yaml"} <= names
    assert not {each for each in names if "kubeconfig" in each or "rec" in each or "notes" in each}


def test_builds_that_differ_are_refused(tmp_path: Path) -> None:
    for folder, text in (("a", "1"), ("b", "2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.whl").write_text(text)
    with pytest.raises(ReleaseError, match=r"two builds differ: x\.whl"):
        expect_equal(*(sorted((tmp_path / each).iterdir()) for each in "ab"))


@pytest.mark.parametrize(
    ("tags", "changes", "problem"),
    [
        ([], "", r"HEAD is not tagged v1\.2\.3"),
        (["v1.2.2"], "", "not tagged"),
        (["v1.2.3"], " M README.md\n", "not committed"),
    ],
)
def test_only_a_tag_is_released(tags: list[str], changes: str, problem: str) -> None:
    with pytest.raises(ReleaseError, match=problem):
        check_tag("1.2.3", tags, changes)
    check_tag("1.2.3", ["v1.2.3"], "")


def test_the_version_and_the_sums(tmp_path: Path) -> None:
    assert read_version(Path(moorage.__file__).read_text()) == moorage.__version__
    (tmp_path / "a").write_text("a")
    sums = write_sums([tmp_path / "a"], tmp_path / "SHA256SUMS")
    checked = subprocess.run(
        ["sha256sum", "--check", sums.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout == "a: OK\n"


@needs_program("hadolint")
def test_the_dockerfile_passes_its_linter() -> None:
    done = subprocess.run(
        [need_program("hadolint"), "--failure-threshold=info", ROOT / "Dockerfile"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
