"""An MPI job whose ranks have a node each."""

from __future__ import annotations

from mooring.demo.pods import SeenPod
from mooring.demo.stage import Stage

TITLE = "A node of one's own"
ABOUT = """\
Each rank of an MPI job wants a node to itself: coexistPolicy, one line in its
spec. Daemons may stay. Nobody else comes, not even around the scheduler."""

_RANKS, _CROWD = 4, 300


async def play(stage: Stage) -> None:
    nodes = await _ranks(stage)
    await stage.pause()
    await _crowd(stage, nodes)
    await stage.pause()
    await _intruder(stage, min(nodes))
    stage.tell.typed("kubectl delete deployment/crowd pod/intruder")
    await stage.client.delete("Pod", "intruder")
    await stage.client.delete("Deployment", "crowd")
    await stage.until_gone("crowd")


async def _ranks(stage: Stage) -> set[str]:
    """An agent on every node, and the ranks; returns the nodes of these."""
    count = len(await stage.client.zones())
    stage.tell.typed("kubectl apply -f agent.yaml -f mpi.yaml")
    await stage.client.apply("agent.yaml")
    await stage.client.apply("mpi.yaml")
    await stage.until(
        "every node has an agent",
        lambda: len({pod.node for pod in stage.pods.placed("agent")}) == count,
        lambda: f"{len(stage.pods.placed('agent'))} of {count} nodes have one",
    )
    await stage.until(
        "four ranks have a node each",
        lambda: len({pod.node for pod in stage.pods.placed("mpi")}) == _RANKS,
        lambda: [pod.node for pod in stage.pods.placed("mpi")],
    )
    return {pod.node for pod in stage.pods.placed("mpi")}


async def _crowd(stage: Stage, nodes: set[str]) -> None:
    stage.tell.typed("kubectl apply -f crowd.yaml")
    await stage.client.apply("crowd.yaml")
    await stage.until(
        "300 other pods have found a place",
        lambda: len(stage.pods.placed("crowd")) == _CROWD,
        lambda: f"{len(stage.pods.placed('crowd'))} have one",
    )
    there = [pod for pod in stage.pods if pod.node in nodes]
    stage.tell.table(("NODE", "PODS"), [(node, _names(there, node)) for node in sorted(nodes)])
    strangers = [pod.name for pod in there if pod.app != "mpi" and not pod.is_daemon]
    stage.promise("none of them is with a rank, only daemons are", not strangers, strangers)


def _names(pods: list[SeenPod], node: str) -> str:
    return ", ".join(sorted(pod.name for pod in pods if pod.node == node))


async def _intruder(stage: Stage, node: str) -> None:
    """Bound by its own manifest, so that only the kubelet can refuse it."""
    stage.tell.typed(
        "kubectl run intruder --image=registry.example/intruder \\\n"
        f'  --overrides=\'{{"spec":{{"nodeName":"{node}"}}}}\''
    )
    container = {"name": "intruder", "image": "registry.example/intruder"}
    await stage.client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "intruder", "labels": {"app": "intruder"}},
            "spec": {"nodeName": node, "containers": [container]},
        }
    )

    def status() -> str:
        pod = stage.pods.named("intruder")
        return f"{pod.status.phase} {pod.status.reason}" if pod else "there is no such pod"

    await stage.until("the kubelet refuses it", lambda: status() == "Failed CoexistPolicy", status)
    pod = stage.pods.named("intruder")
    stage.tell.quoted(pod.status.message if pod else "")
