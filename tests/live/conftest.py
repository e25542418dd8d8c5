"""One control plane for all live tests, emptied between them, with the role that is shipped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from tests.programs import find_control_plane

from .arena import Arena, arena
from .control_plane import ADMIN_TOKEN, ControlPlane, control_plane
from .embedded_plane import embedded_plane
from .gang_versions import GANG_API, GANG_GATES

_DEPLOY = Path(__file__).parents[2] / "deploy"
_ROLES = [_DEPLOY / folder / "rbac.yaml" for folder in ("base", "disk-io", "shadow")]
_FOLDERS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/moorage-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/moorage-system/rolebindings",
    "ServiceAccount": "/api/v1/namespaces/moorage-system/serviceaccounts",
}


@pytest.fixture(scope="session")
def real_plane() -> Iterator[ControlPlane]:
    """A real API server that lets the scheduler do what deploy/ grants it, and nothing more."""
    with control_plane("RBAC") as running:
        asyncio.run(_grant(running))
        yield running


@pytest.fixture(scope="session")
def gang_plane() -> Iterator[ControlPlane]:
    """A real API server that has groups of pods, as its version of Kubernetes has them."""
    gates = "--feature-gates=" + ",".join(f"{gate}=true" for gate in GANG_GATES)
    served = f"--runtime-config={GANG_API}=true"
    with control_plane("RBAC", gates, served) as running:
        asyncio.run(_grant(running))
        yield running


@pytest.fixture(scope="session")
def stand_in() -> Iterator[ControlPlane]:
    """The embedded API server, which grants everything."""
    with embedded_plane() as running:
        asyncio.run(_make_namespace(running))
        yield running


@pytest.fixture
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    """The real API server; without binaries the embedded one, for tests that it will do for."""
    will_do = request.node.get_closest_marker("embedded_will_do") is not None
    chosen = "stand_in" if will_do and find_control_plane() is None else "real_plane"
    found: ControlPlane = request.getfixturevalue(chosen)
    return found


async def _make_namespace(plane: ControlPlane) -> None:
    async with arena(plane.server, ADMIN_TOKEN) as admin:
        namespace = {"metadata": {"name": "moorage-system"}}
        await admin.request("POST", "/api/v1/namespaces", namespace)


async def _grant(plane: ControlPlane) -> None:
    await _make_namespace(plane)
    async with arena(plane.server, ADMIN_TOKEN) as admin:
        for path in _ROLES:
            for item in yaml.safe_load_all(path.read_text()):
                await admin.request("POST", _FOLDERS[item["kind"]], item)


@pytest.fixture
async def admin(plane: ControlPlane) -> AsyncIterator[Arena]:
    """The administrator of an API server without nodes and pods."""
    async with arena(plane.server, ADMIN_TOKEN) as opened:
        await opened.clear()
        yield opened
