"""Chapters on workloads: a deployment, a large job, and pods that have a node to themselves."""

from __future__ import annotations

from collections import Counter
from math import isfinite
from time import perf_counter

from .demo_client import DemoPod
from .demo_context import Chapter, DecisionFigures, DemoContext

_REPLICAS, _PER_ZONE = 9, {"a": 3, "b": 3, "c": 3}


async def _play_deployment(demo: DemoContext) -> None:
    """A deployment that spreads over zones."""
    demo.display.show_command("kubectl apply -f web.yaml")
    await demo.client.apply("web.yaml")
    await demo.until(
        "all 9 pods have a node",
        lambda: len(demo.pods.with_node("web")) == _REPLICAS,
        lambda: f"{len(demo.pods.with_node('web'))} have one",
    )
    zones = await demo.client.zones()
    nodes = sorted(pod.node for pod in demo.pods.with_node("web"))
    found = Counter(zones[node] for node in nodes)
    rows = [
        (zone, str(count), ", ".join(node for node in nodes if zones[node] == zone))
        for zone, count in sorted(found.items())
    ]
    demo.display.show_table(("ZONE", "PODS", "NODES"), rows)
    demo.check("three pods in each zone", found == _PER_ZONE, dict(found))


DEPLOYMENT = Chapter(
    "A deployment",
    """\
Nine replicas that are to be spread evenly over three zones.
Plain Kubernetes, through an API server that any client can talk to.""",
    _play_deployment,
)
_PODS = 2_000
# Others may come in between, and the first of each batch is decided in full.
_SHARE = 0.9


async def _play_job(demo: DemoContext) -> None:
    """A large job, decided by batches."""
    before, began = demo.figures(), perf_counter()
    demo.display.show_command("kubectl apply -f render.yaml")
    await demo.client.apply("render.yaml")
    await demo.until(
        "all 2,000 pods have a node",
        lambda: len(demo.pods.with_node("render")) == _PODS,
        lambda: (
            f"{len(demo.pods.with_node('render')):,} of {len(demo.pods.of('render')):,} have one"
        ),
    )
    took, figures = perf_counter() - began, demo.figures().since(before)
    demo.display.show_table(*_figure_table(figures, took))
    share = figures.reused_share
    demo.check(
        "more than 90% were decided by the answers of identical pods",
        share > _SHARE,
        f"{share:.1%}",
    )
    on_gpus = [pod.name for pod in demo.pods.with_node("render") if pod.node.startswith("gpu-")]
    demo.check("none of them is on a GPU node; chapter 4 says why", not on_gpus, on_gpus)
    await demo.pause()
    demo.display.show_command("kubectl delete job render")
    await demo.client.delete("Job", "render")
    await demo.until_gone("render")


def _figure_table(
    figures: DecisionFigures, took: float
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """From the request to the last binding that a client saw, and of it deciding alone."""
    decisions = max(figures.decisions, 1)
    return ("PODS/S", "TOOK", "OF IT DECIDING", "P99 DECISION", "BY BATCH", "BY CLASS"), [
        (
            f"{_PODS / took:,.0f}",
            f"{took:.2f} s",
            f"{figures.seconds:.2f} s",
            _at_most(figures.p99_seconds),
            f"{figures.by_batch / decisions:.1%}",
            f"{figures.by_class / decisions:.1%}",
        )
    ]


def _at_most(seconds: float) -> str:
    """Returns the bound of a bucket; there is none above all bounds."""
    return f"<= {1e3 * seconds:.3g} ms" if isfinite(seconds) else "not in the buckets"


JOB = Chapter(
    "2,000 pods at once",
    """\
The pods of a job are identical. Moorage ranks the nodes for the first of them,
and the others take theirs from that ranking: a batch. The figures are its own.""",
    _play_job,
)
_RANKS, _CROWD = 4, 300


async def _play_exclusive(demo: DemoContext) -> None:
    """An MPI job whose ranks have a node each."""
    nodes = await _ranks(demo)
    await demo.pause()
    await _crowd(demo, nodes)
    await demo.pause()
    await _intruder(demo, min(nodes))
    demo.display.show_command("kubectl delete deployment/crowd pod/intruder")
    await demo.client.delete("Pod", "intruder")
    await demo.client.delete("Deployment", "crowd")
    await demo.until_gone("crowd")


async def _ranks(demo: DemoContext) -> set[str]:
    """Starts an agent on every node and the ranks; returns the nodes of the ranks."""
    count = len(await demo.client.zones())
    demo.display.show_command("kubectl apply -f agent.yaml -f mpi.yaml")
    await demo.client.apply("agent.yaml")
    await demo.client.apply("mpi.yaml")
    await demo.until(
        "every node has an agent",
        lambda: len({pod.node for pod in demo.pods.with_node("agent")}) == count,
        lambda: f"{len(demo.pods.with_node('agent'))} of {count} nodes have one",
    )
    await demo.until(
        "four ranks have a node each",
        lambda: len({pod.node for pod in demo.pods.with_node("mpi")}) == _RANKS,
        lambda: [pod.node for pod in demo.pods.with_node("mpi")],
    )
    return {pod.node for pod in demo.pods.with_node("mpi")}


async def _crowd(demo: DemoContext, nodes: set[str]) -> None:
    demo.display.show_command("kubectl apply -f crowd.yaml")
    await demo.client.apply("crowd.yaml")
    await demo.until(
        "300 other pods have found a place",
        lambda: len(demo.pods.with_node("crowd")) == _CROWD,
        lambda: f"{len(demo.pods.with_node('crowd'))} have one",
    )
    there = [pod for pod in demo.pods if pod.node in nodes]
    rows = [(node, _names(there, node)) for node in sorted(nodes)]
    demo.display.show_table(("NODE", "PODS"), rows)
    strangers = [pod.name for pod in there if pod.app != "mpi" and not pod.is_daemon]
    demo.check("none of them is with a rank, only daemons are", not strangers, strangers)


def _names(pods: list[DemoPod], node: str) -> str:
    return ", ".join(sorted(pod.name for pod in pods if pod.node == node))


async def _intruder(demo: DemoContext, node: str) -> None:
    """Makes a pod that its manifest binds, so that only the kubelet can refuse it."""
    demo.display.show_command(
        "kubectl run intruder --image=registry.example/intruder \\\n"
        f'  --overrides=\'{{"spec":{{"nodeName":"{node}"}}}}\''
    )
    container = {"name": "intruder", "image": "registry.example/intruder"}
    await demo.client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "intruder", "labels": {"app": "intruder"}},
            "spec": {"nodeName": node, "containers": [container]},
        }
    )

    def status() -> str:
        pod = demo.pods.find("intruder")
        return f"{pod.status.phase} {pod.status.reason}" if pod else "there is no such pod"

    await demo.until("the kubelet refuses it", lambda: status() == "Failed CoexistPolicy", status)
    pod = demo.pods.find("intruder")
    demo.display.show_quote(pod.status.message if pod else "")


EXCLUSIVE = Chapter(
    "A node for one pod",
    """\
Each rank of an MPI job wants a node to itself: coexistPolicy, one line in its
spec. Daemons may stay. No other pod comes, not even around the scheduler.""",
    _play_exclusive,
)


_GANG, _TIGHT = 6, 4
_RIVALS = ("red", "blue")


async def _play_gangs(demo: DemoContext) -> None:
    """Gangs: all or nothing."""
    demo.display.show_command("kubectl apply -f gangs.yaml")
    await demo.client.apply("gangs.yaml")
    await demo.until(
        "one gang has all six of its pods on nodes",
        lambda: _GANG in _sizes(demo),
        lambda: dict(zip(_RIVALS, _sizes(demo), strict=True)),
    )
    winner, loser = sorted(_RIVALS, key=lambda name: -len(demo.pods.with_node(name)))
    await demo.until(
        f"{loser} waits and holds nothing",
        lambda: bool(_refusals(demo, loser)) and not demo.pods.with_node(loser),
        lambda: f"{len(demo.pods.with_node(loser))} of its pods have a node",
    )
    await demo.pause()
    await _play_rack(demo, winner, loser)


async def _play_rack(demo: DemoContext, winner: str, loser: str) -> None:
    demo.display.show_command("kubectl apply -f tight.yaml")
    await demo.client.apply("tight.yaml")
    await demo.until_event_with("tight waits for a rack", "GangDiagnosis", "In one rack")
    await demo.pause()
    demo.display.show_command(f"kubectl delete job {winner} {loser}")
    for name in (winner, loser):
        await demo.client.delete("Job", name)
    await demo.until(
        "tight has all four pods",
        lambda: len(demo.pods.with_node("tight")) == _TIGHT,
        lambda: f"{len(demo.pods.with_node('tight'))} have a node",
    )
    racks = {pod.node.rpartition("-")[0] for pod in demo.pods.with_node("tight")}
    demo.check("they are all in one rack", len(racks) == 1, sorted(racks))
    demo.display.show_command("kubectl delete job tight")
    await demo.client.delete("Job", "tight")
    await demo.until_gone("tight")


def _sizes(demo: DemoContext) -> list[int]:
    """Returns how many pods of each gang have a node."""
    return [len(demo.pods.with_node(name)) for name in _RIVALS]


def _refusals(demo: DemoContext, name: str) -> list[str]:
    return [pod.refusal for pod in demo.pods.of(name) if pod.refusal]


GANGS = Chapter(
    "Gangs: all or nothing",
    """\
Two gangs of six come at once, and there is room for eight. Placed pod by pod,
each would hold what the other needs. A third must have a rack to itself.""",
    _play_gangs,
)
