"""What `moorage up --from` reads: dumps, recordings, and clusters by their kubeconfig."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from moorage.cli.up_cluster import read_copies
from moorage.documents.errors import InputError
from moorage.embedded.adoption import Copied, adopt_all
from moorage.embedded.server import ServerSettings, serve
from tests.builders import node_manifest, pod_manifest
from tests.record.test_replay import record


def read(*sources: str | Path, with_values: bool = False) -> list[Copied]:
    return asyncio.run(read_copies([str(each) for each in sources], with_values=with_values))


def titles(found: list[Copied]) -> set[str]:
    return {f"{item['kind']} {item['metadata']['name']}" for _, item in found}


def test_a_dump(tmp_path: Path) -> None:
    path = tmp_path / "dump.yaml"
    items = [{"apiVersion": "v1", **each} for each in (node_manifest("n"), pod_manifest("p"))]
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    found = read(path)

    assert titles(found) == {"Node n", "Pod p"}
    assert found[0][0] == f"{path}: document 1: items[0]"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    record(tmp_path / "run")
    return tmp_path / "run"


def test_a_recording_is_read_as_it_ends(recording: Path) -> None:
    ended = {"Node n0", "Node n1", "Pod p1", "Pod p3", "Pod huge", "Pod urgent", "Pod last"}

    for path in (recording, recording.with_name("run.000001")):
        found = read(path)
        assert titles(found) == ended
        nodes = {item["metadata"]["name"]: item["spec"].get("nodeName") for _, item in found}
        assert (nodes["urgent"], nodes["huge"]) == ("n0", None)


async def test_what_is_read_of_a_recording_can_be_adopted(recording: Path) -> None:
    server = await serve(ServerSettings(tls=False))
    try:
        found = await read_copies([str(recording)], with_values=False)
        report = adopt_all(server.api, found, with_values=False)
    finally:
        await server.stop()

    assert (report.adopted["Pod"], report.adopted["Node"], report.refusals) == (5, 2, [])


async def test_a_cluster_by_its_kubeconfig(tmp_path: Path) -> None:
    server = await serve(ServerSettings())
    try:
        api = server.api
        api.create(api.kinds["nodes"], "", node_manifest("n"))
        api.create(api.kinds["secrets"], "default", {"metadata": {"name": "s"}})
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(server.kubeconfig))
        found = await read_copies([str(path)], with_values=False)
        every = await read_copies([str(path)], with_values=True)
    finally:
        await server.stop()

    assert {"Node n", "Namespace default", "Service kubernetes"} <= titles(found)
    assert titles(every) - titles(found) == {"Secret s"}


def test_what_is_none_of_these_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.yaml: no such file"):
        read(tmp_path / "absent.yaml")
    (tmp_path / "odd.yaml").write_text("kind: Config\n")
    with pytest.raises(InputError, match=r"odd\.yaml: document 1: apiVersion: is required"):
        read(tmp_path / "odd.yaml")
