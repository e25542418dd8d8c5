"""What API servers ask for of a benchmark that writes pods: classes of priorities, subresources."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from moorage.bench.cases import RunFailed
from moorage.bench.live.object_writer import ObjectWriter
from moorage.client import Api, ApiError

PODS = "/api/v1/namespaces/a/pods"
CLASS = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Server:
    """Takes everything, and keeps what it was sent, in that order."""

    def __init__(self, refusals: int = 0, message: str = "") -> None:
        """Pods are refused so many times first."""
        self.sent: list[tuple[str, str, dict[str, Any]]] = []
        self._refusals, self._message = refusals, message

    async def post(self, path: str, body: bytes) -> bytes:
        if path == PODS and self._refusals:
            self._refusals -= 1
            raise ApiError(403, "Forbidden", self._message)
        self.sent.append(("POST", path, msgspec.json.decode(body)))
        return body

    async def put(self, path: str, body: bytes) -> bytes:
        self.sent.append(("PUT", path, msgspec.json.decode(body)))
        return body

    async def get(self, path: str) -> bytes:
        return b'{"metadata": {"resourceVersion": "7"}, "spec": {"nodeName": "n"}}'


def pod(**spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"namespace": "a", "name": "p", "uid": "u"}, "spec": spec}


def write(
    *manifests: dict[str, Any], server: Server | None = None
) -> list[tuple[str, str, dict[str, Any]]]:
    server = server or Server()
    writer = ObjectWriter(cast(Api, server), {})

    async def create() -> None:
        for manifest in manifests:
            await writer.create(manifest)

    asyncio.run(create())
    return server.sent


def test_objects_are_written_in_the_version_that_is_read() -> None:
    older = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
    }
    ((_, path, body),) = write(older)
    assert path == "/apis/resource.k8s.io/v1/deviceclasses"
    assert body["apiVersion"] == "resource.k8s.io/v1"


def test_a_pod_with_a_priority_gets_a_class_of_it() -> None:
    sent = write(pod(priority=10), pod(priority=10))
    assert [path for _, path, _ in sent] == [CLASS, PODS, PODS]
    assert sent[0][2]["value"] == 10
    assert all(each[2]["spec"]["priorityClassName"] == "bench-priority-10" for each in sent[1:])


def test_a_pod_is_sent_again_until_its_class_is_known() -> None:
    late = Server(
        2, 'pods "p" is forbidden: no PriorityClass with name bench-priority-10 was found'
    )
    assert [path for _, path, _ in write(pod(priority=10), server=late)] == [CLASS, PODS]
    with pytest.raises(RunFailed, match="quota"):
        write(pod(priority=10), server=Server(1, "exceeded quota"))


def test_a_pod_that_names_its_class_or_has_no_priority_is_sent_as_it_is() -> None:
    sent = write(pod(), pod(priority=10, priorityClassName="high"))
    assert [body["spec"] for _, _, body in sent] == [
        {},
        {"priority": 10, "priorityClassName": "high"},
    ]


def test_an_update_goes_to_the_subresource_that_it_names() -> None:
    server = Server()
    writer = ObjectWriter(cast(Api, server), {})
    asyncio.run(writer.replace(pod(priority=10), ("resize",)))
    ((method, path, body),) = server.sent
    assert (method, path) == ("PUT", f"{PODS}/p/resize")
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["spec"] == {
        "priority": 10,
        "priorityClassName": "bench-priority-10",
        "nodeName": "n",
    }
