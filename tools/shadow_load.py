"""A shadow beside the real kube-scheduler: what they agree on, what each of them costs, who writes.

    KUBEBUILDER_ASSETS=… python -m tools.shadow_load --pods 5000 --churn 1000 --kinds 100

Starts etcd, an API server with RBAC and an audit log, kube-scheduler and `moorage shadow` with the
role of deploy/shadow. Then pods come, and some are replaced by others, while nodes are cordoned.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.live.arena import Arena, arena, node, pod
from tests.live.control_plane import ADMIN_TOKEN, SHADOW_TOKEN, control_plane
from tests.live.moorage_process import MoorageProcess, kubeconfig, running
from tests.ports import free_port

_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_SHADOW_USER = "system:serviceaccount:moorage-system:moorage-shadow"
_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_GRANTS = Path(__file__).parents[1] / "deploy" / "shadow" / "rbac.yaml"
_READS = {"get", "list", "watch"}
# So many requests are under way at a time, and every so many replaced pods a node is cordoned.
_WIDTH = 16
# With --urgent, every so many kinds have a higher priority.
_URGENT: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
}
_URGENT_EVERY = 3
_CORDON_EVERY = 50
_SECONDS = 900.0

_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [_SHADOW_USER]}, {"level": "None"}],
}


def make_node(at: int) -> dict[str, Any]:
    """A node in one of three zones; every tenth has GPUs, every twentieth a taint."""
    made = node(f"n{at}", cpu=8 if at % 3 else 16)
    disk = "fast" if at % 4 else "slow"
    made["metadata"]["labels"] |= {_ZONE: "abc"[at % 3], "disk": disk}
    if at % 10 == 0:
        made["status"]["allocatable"]["example.com/gpu"] = "4"
        made["status"]["capacity"]["example.com/gpu"] = "4"
    if at % 20 == 7:
        made["spec"] = {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}
    return made


def _shape(number: int, app: dict[str, str]) -> dict[str, Any]:
    """What sets pods of a kind apart beside their requests and labels."""
    same = {"labelSelector": {"matchLabels": app}}

    def require(key: str, value: str) -> dict[str, Any]:
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    def prefer(key: str) -> dict[str, Any]:
        term = {"weight": 50, "podAffinityTerm": {**same, "topologyKey": key}}
        return {"preferredDuringSchedulingIgnoredDuringExecution": [term]}

    def spread(key: str, unsatisfiable: str) -> dict[str, Any]:
        return {**same, "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": unsatisfiable}

    return (
        {},
        {"nodeSelector": {"disk": "fast"}},
        {"affinity": {"nodeAffinity": require("disk", "slow")}},
        {"affinity": {"podAntiAffinity": prefer(_HOST)}},
        {"affinity": {"podAffinity": prefer(_ZONE)}},
        {"topologySpreadConstraints": [spread(_ZONE, "DoNotSchedule")]},
        {"topologySpreadConstraints": [spread(_HOST, "ScheduleAnyway")]},
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"priority": None},
        {"hostPort": 8080},
    )[number % 10]


def make_pod(name: str, kind: int, *, urgent: bool = False) -> dict[str, Any]:
    """A pod of a kind; ten kinds in turn differ by rules, all by requests and labels."""
    app = {"app": f"a{kind}"}
    shape = dict(_shape(kind, app))
    port = shape.pop("hostPort", None)
    wants_gpu = "priority" in shape and shape.pop("priority", None) is None
    made = pod(name, cpu=f"{100 + 7 * (kind % 40)}m", **shape)
    made["metadata"]["labels"] = app
    if urgent and kind % _URGENT_EVERY == 0:
        made["spec"]["priorityClassName"] = _URGENT["metadata"]["name"]
    container = made["spec"]["containers"][0]
    container["image"] = f"registry.example/app{kind}"
    if port is not None:
        container["ports"] = [{"containerPort": 80, "hostPort": port + kind}]
    if wants_gpu and kind % 100 < 10:
        container["resources"]["limits"] = {"example.com/gpu": "1"}
    return made


def read_seconds(pid: int) -> float:
    """The processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _create(admin: Arena, given: argparse.Namespace) -> None:
    pods = (make_pod(f"p{at}", at % given.kinds, urgent=given.urgent) for at in range(given.pods))
    await admin.create(pods, _WIDTH)


async def _replace(admin: Arena, given: argparse.Namespace) -> None:
    """Replaces pods by others, and cordons a node in turn."""
    left = iter(range(given.churn))

    async def worker() -> None:
        for at in left:
            await admin.delete(f"/api/v1/namespaces/default/pods/p{at * 7 % given.pods}")
            new = given.pods + at
            made = make_pod(f"p{new}", new * 3 % given.kinds, urgent=given.urgent)
            await admin.create([made], 1)
            if at % _CORDON_EVERY == 0:
                await _cordon(admin, at // _CORDON_EVERY)

    await asyncio.gather(*(worker() for _ in range(_WIDTH)))


async def _cordon(admin: Arena, turn: int) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    for name, value in ((f"n{turn}", True), (f"n{turn - 1}", None)):
        if turn or value:
            body = {"spec": {"unschedulable": value}}
            await admin.request("PATCH", f"/api/v1/nodes/{name}", body, headers=headers)


async def _prepare(admin: Arena, nodes: int) -> None:
    await admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": "moorage-system"}})
    for item in yaml.safe_load_all(_GRANTS.read_text()):
        folders = {"ClusterRole": _ROLES, "ClusterRoleBinding": f"{_ROLES[:-1]}bindings"}
        if item["kind"] in folders:
            await admin.request("POST", folders[item["kind"]], item)
    await admin.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", _URGENT)
    await admin.create((make_node(at) for at in range(nodes)), _WIDTH)


async def _judged(shadow: MoorageProcess, port: int, count: int) -> dict[str, Any]:
    """Waits until the shadow has seen so many placements; its report."""
    async with arena(f"http://127.0.0.1:{port}", "") as page, asyncio.timeout(_SECONDS):
        while True:
            told: dict[str, Any] = await page.request("GET", "/report.json")
            if told["placed"] >= count:
                # A placement that is not understood yet is looked at again for some seconds.
                await asyncio.sleep(3.0)
                last: dict[str, Any] = await page.request("GET", "/report.json")
                return last
            assert not shadow.has_ended, shadow.log[-2000:]
            # Asking costs it processor time.
            await asyncio.sleep(5.0)


def _list_writes(log: Path) -> Iterator[str]:
    """The verbs that the shadow's user asked for, and what it was refused."""
    verbs: Counter[str] = Counter()
    for line in log.read_bytes().splitlines():
        told = msgspec.json.decode(line)
        verbs[told["verb"]] += 1
        code = told.get("responseStatus", {}).get("code", 0)
        if code >= 400:
            verbs[f"{told['verb']} refused with {code}"] += 1
    yield ", ".join(f"{verb} {count}" for verb, count in sorted(verbs.items()))
    writes = [verb for verb in verbs if verb.split(" ", 1)[0] not in _READS]
    yield f"writes: {writes or 'none'}"


async def _measure(given: argparse.Namespace, folder: Path) -> None:
    policy, log = folder / "policy.json", folder / "audit.log"
    policy.write_text(json.dumps(_AUDIT))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    with control_plane("RBAC", *flags) as plane:
        reading = kubeconfig(folder / "reading", plane.server, SHADOW_TOKEN)
        writing = kubeconfig(folder / "writing", plane.server, ADMIN_TOKEN)
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(writing), "qps": 5000, "burst": 5000},
            "leaderElection": {"leaderElect": False},
            "percentageOfNodesToScore": given.percentage,
        }
        (folder / "theirs.json").write_text(json.dumps(configuration))
        theirs = (
            plane.bin / "kube-scheduler",
            f"--config={folder / 'theirs.json'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--authentication-kubeconfig={writing}",
            "--authentication-skip-lookup",
        )
        port = free_port()
        ours = (*given.python.split(), "-m", "moorage", "shadow", f"--kubeconfig={reading}")
        options = (f"--port={port}", f"--percentage-of-nodes-to-score={given.percentage}")
        async with arena(plane.server, ADMIN_TOKEN) as admin:
            await _prepare(admin, given.nodes)
            async with (
                running(folder / "ours", *ours, *options, "--every=3600") as shadow,
                running(folder / "theirs", *theirs) as other,
            ):
                await shadow.logged("Watching")
                await asyncio.sleep(5.0)
                before = read_seconds(shadow.pid), read_seconds(other.pid)
                await _create(admin, given)
                await admin.bound(given.pods, _SECONDS)
                await _replace(admin, given)
                await admin.bound(given.pods, _SECONDS)
                report = await _judged(shadow, port, given.pods + given.churn)
                mine, their = (
                    read_seconds(shadow.pid) - before[0],
                    read_seconds(other.pid) - before[1],
                )
                _tell(report, mine, their)
                if given.report:
                    given.report.write_text(json.dumps(report, indent=2))
        print("\n".join(_list_writes(log)))


def _tell(report: dict[str, Any], mine: float, their: float) -> None:
    for name, count in report["byAgreement"].items():
        if count:
            print(f"{count:>8,}  {name}")
    print(f"agreement {report['agreement']:.3f}%, explained {report['explained']:.3f}%")
    print(f"processor time: shadow {mine:.2f} s, kube-scheduler {their:.2f} s: {mine / their:.1%}")
    for each in report["differences"]:
        if "state" not in each["agreement"] and "part of" not in each["agreement"]:
            print(each)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=5_000)
    parser.add_argument("--churn", type=int, default=1_000, help="pods that are replaced")
    parser.add_argument("--kinds", type=int, default=10, help="kinds of pods, in turn")
    parser.add_argument("--urgent", action="store_true", help="give a third a higher priority")
    parser.add_argument("--percentage", type=int, default=0, help="percentageOfNodesToScore")
    parser.add_argument("--python", default=sys.executable, help="what runs the shadow")
    parser.add_argument("--report", type=Path, help="write the shadow's report here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="moorage-shadow-") as folder:
        asyncio.run(_measure(given, Path(folder)))


if __name__ == "__main__":
    main()
