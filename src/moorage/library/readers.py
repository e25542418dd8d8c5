"""Reads what a library user asks about: clusters and traces."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from moorage.config.kubernetes_versions import DEFAULT_VERSION, read_server_version
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import READ_KINDS, Object
from moorage.record.last_state import read_last_state
from moorage.record.reader import is_recording
from moorage.simulate.loading import Input, load as load_manifests
from moorage.simulate.traces import read_trace as read_arrivals
from moorage.simulate.traces.arrivals import ArrivalTrace

from .snapshot import ClusterSnapshot


def read_cluster(*paths: str | Path) -> ClusterSnapshot:
    """Reads manifests, a dump such as `kubectl get nodes,pods -A -o yaml` prints, or a recording.

    From a recording, it reads the cluster at its end. Raises InputError, which names file, object
    and field.
    """
    recordings = [Path(path) for path in paths if is_recording(Path(path))]
    others = [str(path) for path in paths if Path(path) not in recordings]
    found = load_manifests(others) if others or not paths else Input(())
    recorded = (
        [from_builtins(item["kind"], item) for _, item in read_last_state(recordings)]
        if recordings
        else []
    )
    return ClusterSnapshot(
        (*found.objects, *recorded), notes=found.notes, claim_templates=found.claim_templates
    )


def read_live_cluster(
    kubeconfig: str | Path | None = None, context: str | None = None
) -> ClusterSnapshot:
    """Reads what scheduling needs from an API server, which is found as `kubectl` finds it.

    Raises ClientError or InputError. It also works in a notebook, which runs an event loop already.
    """
    # Here, because the client takes long to load.
    from moorage.client import Api, ApiError, connect
    from moorage.client.listing import list_kinds

    notes: list[str] = []

    async def read() -> tuple[list[Object], str]:
        connection = await connect(None if kubeconfig is None else str(kubeconfig), context, None)
        async with Api(connection) as api:
            version = DEFAULT_VERSION
            # A user who may not read the version may still list.
            with suppress(ApiError):
                version = read_server_version(await api.get("/version"))
            objects = await list_kinds(
                api, sorted(READ_KINDS), lambda kind, key, why: notes.append(f"{kind} {key}: {why}")
            )
            return objects, version.name

    with ThreadPoolExecutor(1) as pool:
        objects, version = pool.submit(lambda: asyncio.run(read())).result()
    return ClusterSnapshot(tuple(objects), emulation_version=version, notes=tuple(notes))


def read_trace(path: str | Path) -> ArrivalTrace:
    """Reads which pods come and go: a recording, the folder of OpenB, or a CSV file."""
    return read_arrivals(Path(path))
