"""The real kube-controller-manager, on the same nodes, writes what these controllers write."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import WriteOptions
from moorage.embedded.controllers.runner import run_controllers
from moorage.embedded.hollow.hollow_nodes import HollowNodes
from moorage.embedded.hollow.node_shapes import make_nodes, plain_nodes
from moorage.embedded.hollow.pod_life import HollowSettings
from moorage.embedded.kinds.subresources import bind
from moorage.embedded.server import Server, ServerSettings
from tests.embedded.controllers.playing import Json, template, workload
from tests.embedded.serving import binding, served
from tests.patience import PATIENCE_SECONDS
from tests.programs import find_program, needs_program

BINARY = find_program("kube-controller-manager")
pytestmark = needs_program("kube-controller-manager")

# It fills its caches first; a minute is enough on a busy machine.
_CONTROLLERS = ("deployment", "replicaset", "statefulset", "daemonset", "job", "garbage-collector")
_KINDS = (
    *("deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"),
    *("controllerrevisions.apps", "jobs.batch", "pods"),
)
#: What the server gives, what differs from run to run, and what one of the two leaves out: the
#: server keeps the revision of a deployment out of writes to its status.
_OTHERS = frozenset(
    (
        *("uid", "resourceVersion", "creationTimestamp", "generateName", "managedFields"),
        *("finalizers", "nodeName", "hostIP", "hostIPs", "podIP", "podIPs", "startedAt"),
        *("finishedAt", "values", "deployment.kubernetes.io/revision"),
        # Which node a pod gets is a matter of chance.
        "topology.kubernetes.io/zone",
    )
)

_LETTERS = "bcdfghjklmnpqrstvwxz0-9"


def _job(code: int = 0, seconds: int = 1, policy: str = "Never", **spec: Any) -> Json:
    made = template()
    made["metadata"]["annotations"] = {
        "hollow.moorage.dev/exit-code": str(code),
        "hollow.moorage.dev/run-seconds": str(seconds),
    }
    made["spec"]["restartPolicy"] = policy
    return {"template": made, **spec}


def _indexed(size: int, code: int = 0, **spec: Any) -> Json:
    return _job(code, completionMode="Indexed", completions=size, parallelism=size, **spec)


def _rules(action: str, code: int) -> Json:
    on_codes = {"operator": "In", "values": [code]}
    return {"rules": [{"action": action, "onExitCodes": on_codes}]}


WORKLOADS: tuple[tuple[str, str, Json], ...] = (
    ("deployments.apps", "web", workload(replicas=3)),
    ("statefulsets.apps", "db", workload(replicas=2, serviceName="db")),
    ("daemonsets.apps", "agent", workload()),
    ("jobs.batch", "plain", _job(completions=2, parallelism=2)),
    ("jobs.batch", "indexed", _indexed(3)),
    ("jobs.batch", "failing", _job(3, backoffLimit=0)),
    ("jobs.batch", "restarted", _job(1, policy="OnFailure", backoffLimit=1)),
    ("jobs.batch", "late", _job(seconds=100, activeDeadlineSeconds=2)),
    ("jobs.batch", "suspended", _job(suspend=True)),
    ("jobs.batch", "ruled", _job(7, podFailurePolicy=_rules("FailJob", 7))),
    ("jobs.batch", "limited", _indexed(4, 1, backoffLimitPerIndex=0)),
    ("jobs.batch", "enough", _indexed(3, successPolicy={"rules": [{"succeededIndexes": "0-2"}]})),
)


def _apply(api: ObjectApi) -> None:
    for resource, name, spec in WORKLOADS:
        labels = json.dumps(spec).replace('"app": "web"', f'"app": "{name}"')
        item = {"metadata": {"name": name}, "spec": json.loads(labels)}
        api.create(api.kinds[resource], "default", item)


def _objects(api: ObjectApi, resource: str) -> list[Json]:
    return [entry.object for entry in api.store.table(api.kinds[resource].table).in_order()]


def _change(api: ObjectApi) -> None:
    """Another version, another size, and a job that goes on."""
    for resource, name, _ in WORKLOADS[:3]:
        item = api.get(api.kinds[resource], "default", name).object
        item["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/app:2"
        if name == "web":
            item["spec"]["replicas"] = 5
        api.update(api.kinds[resource], "default", name, item)
    job = api.get(api.kinds["jobs.batch"], "default", "suspended").object
    job["spec"]["suspend"] = False
    api.update(api.kinds["jobs.batch"], "default", "suspended", job)


def _is_settled(api: ObjectApi) -> bool:
    """Whether every workload has come to where it stays."""
    ended = {"Complete", "Failed", "Suspended"}
    for job in _objects(api, "jobs.batch"):
        told = (job.get("status") or {}).get("conditions") or ()
        if not ended & {each["type"] for each in told}:
            return False
    sizes = {"deployments.apps": "replicas", "statefulsets.apps": "replicas"}
    for resource, field in sizes.items():
        for each in _objects(api, resource):
            status, size = each.get("status") or {}, each["spec"][field]
            counts = {status.get(f"{kind}eplicas") for kind in ("r", "updatedR", "availableR")}
            if counts != {size} or status["observedGeneration"] != each["metadata"]["generation"]:
                return False
    (daemon,) = _objects(api, "daemonsets.apps")
    kinds = ("numberAvailable", "updatedNumberScheduled", "desiredNumberScheduled")
    return {(daemon.get("status") or {}).get(kind) for kind in kinds} == {3}


async def _settled_picture(api: ObjectApi) -> dict[str, Any]:
    """What was written by the time that nothing more is."""
    before = None
    for _ in range(int(PATIENCE_SECONDS * 2)):
        await asyncio.sleep(0.5)
        now = _picture(api) if _is_settled(api) else None
        if now is not None and now == before:
            return now
        before = now
    raise AssertionError(f"not settled: {_picture(api)}")


async def _bind(running: Server) -> None:
    """A scheduler that knows no better than one node after another."""
    table, turn = running.api.store.table("pods"), 0
    while True:
        for entry in list(table.entries.values()):
            spec = entry.object["spec"]
            if not spec.get("nodeName"):
                chosen = re.search(r'"(node-\d)"', json.dumps(spec.get("affinity")))
                node = chosen[1] if chosen else f"node-{turn % 3}"
                sent = binding(entry.name, node)
                bind(running.api, entry.namespace, entry.name, sent, WriteOptions())
                turn += 1
        await asyncio.sleep(0.05)


@asynccontextmanager
async def _cluster() -> AsyncIterator[Server]:
    """A server with nodes and pods that run, but nobody who makes any."""
    async with served(ServerSettings(tls=True)) as client:
        running = client.running
        make_nodes(running.api, plain_nodes(3).shapes)
        hollow = HollowNodes(running.api, HollowSettings())
        tasks = [asyncio.create_task(each) for each in (hollow.run(), _bind(running))]
        try:
            yield running
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _pictures(api: ObjectApi) -> list[dict[str, Any]]:
    """How everything is at first, and after changes."""
    _apply(api)
    first = await _settled_picture(api)
    _change(api)
    second = await _settled_picture(api)
    # How many steps a rollout takes, and so what is told of it, is a matter of chance.
    del second["events"]
    return [first, second]


async def _with_own() -> list[dict[str, Any]]:
    async with _cluster() as running:
        controllers = asyncio.create_task(run_controllers(running.api))
        try:
            return await _pictures(running.api)
        finally:
            controllers.cancel()
            await asyncio.gather(controllers, return_exceptions=True)


async def _with_real(folder: Path) -> list[dict[str, Any]]:
    async with _cluster() as running:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(running.kubeconfig))
        names = ",".join(f"{each}-controller" for each in _CONTROLLERS)
        process = await asyncio.create_subprocess_exec(
            str(BINARY),
            *("--kubeconfig", str(kubeconfig), "--controllers", names),
            *("--kube-api-content-type", "application/json"),
            *("--leader-elect=false", "--secure-port=0"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            return await _pictures(running.api)
        finally:
            process.terminate()
            await process.wait()


def _picture(api: ObjectApi) -> dict[str, Any]:
    """All that the controllers have written, without what differs from run to run."""
    found = [plain(each) for kind in _KINDS for each in _objects(api, kind)]
    for each in found:
        if each["kind"] == "ReplicaSet":
            # So many steps it took to its size; how many is a matter of chance.
            del each["metadata"]["generation"], each["status"]["observedGeneration"]
    seen: dict[str, Any] = {}
    for each in sorted(found, key=partial(json.dumps, sort_keys=True)):
        seen.setdefault(f"{each['kind']} {each['metadata']['name']}", []).append(each)
    told = sorted(
        f"{each['involvedObject']['kind']} {each['type']} {each['reason']} {plain(each['message'])}"
        for each in _objects(api, "events")
    )
    return {**seen, "events": told}


def plain(value: Any) -> Any:
    match value:
        case dict():
            kept = {key: plain(each) for key, each in value.items() if key not in _OTHERS}
            return {key: each for key, each in kept.items() if key != "annotations" or each}
        case list():
            return [plain(each) for each in value]
        case str():
            value = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", value)
            value = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<uid>", value)
            value = re.sub(rf"^[{_LETTERS}]{{8,10}}$", "<hash>", value)
            value = re.sub(rf"\b(web|db|agent)-[{_LETTERS}]{{8,10}}\b", r"\1-<hash>", value)
            return re.sub(rf"-[{_LETTERS}]{{5}}\b", "-<name>", value)
        case _:
            return value


async def test_both_write_the_same(tmp_path: Path) -> None:
    real, own = await asyncio.gather(_with_real(tmp_path), _with_own())

    for theirs, ours in zip(real, own, strict=True):
        assert ours.keys() == theirs.keys()
        for name, written in theirs.items():
            assert ours[name] == written, name
