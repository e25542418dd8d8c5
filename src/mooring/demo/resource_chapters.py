"""Chapters on what is scarce: GPUs, disks, devices, room for an urgent pod; what helps a pod."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from mooring.engine.explain import Explanation, Suggestion
from mooring.framework.edits import LowerRequest

from .demo_client import load_objects
from .stage import BrokenPromise, Chapter, Stage


async def _play_gpus(stage: Stage) -> None:
    """GPU nodes that are kept for those who use GPUs."""
    stage.narrator.show_command("kubectl apply -f gpus.yaml")
    await stage.client.apply("gpus.yaml")
    await stage.until(
        "with-gpu is on a GPU node",
        lambda: _node(stage, "with-gpu").startswith("gpu-"),
        lambda: f"it is on {_node(stage, 'with-gpu') or 'no node'}",
    )

    def refusal() -> str:
        pod = stage.pods.find("without-gpu")
        return pod.refusal if pod else ""

    await stage.until(
        "without-gpu waits, because of GPUAware",
        lambda: "node(s) with GPUs only take pods with a GPU limit" in refusal(),
        lambda: refusal() or f"it is on {_node(stage, 'without-gpu') or 'no node'}",
    )
    stage.narrator.show_quote(refusal().partition(". ")[0])
    others = [
        pod.name
        for pod in stage.pods
        if pod.node.startswith("gpu-") and not pod.is_daemon and pod.name != "with-gpu"
    ]
    stage.promise("but for daemons, no other pod is on a GPU node", not others, others)


def _node(stage: Stage, name: str) -> str:
    pod = stage.pods.find(name)
    return pod.node if pod else ""


GPUS = Chapter(
    "GPUs for those who use them",
    """\
Two pods want 32 cores, which only the GPU nodes have. One of them has no use
for a GPU: the plugin GPUAware keeps it off, and lets the other in.""",
    _play_gpus,
)
_FAST = {"disk-fast-0", "disk-fast-1"}
_MEASURED = "disk-slow-2"


async def _play_disks(stage: Stage) -> None:
    """Disk bandwidth, which Kubernetes does not count."""
    stage.narrator.show_command("kubectl apply -f ingest.yaml")
    await stage.client.apply("ingest.yaml")
    await stage.until(
        "each fast disk has one of them",
        lambda: _ingest_nodes(stage) == _FAST and len(stage.pods.with_node("ingest")) == len(_FAST),
        lambda: sorted(_ingest_nodes(stage)),
    )
    await stage.until(
        "the third waits",
        lambda: "Insufficient disk read bandwidth" in _ingest_refusal(stage),
        lambda: _ingest_refusal(stage) or "it was not refused",
    )
    stage.narrator.show_quote(_ingest_refusal(stage).partition(". ")[0])
    await stage.pause()
    stage.narrator.show_command(
        f"kubectl patch nodediskiostatus {_MEASURED} --subresource=status \\\n"
        '  --type=merge -p \'{"status":{"allocatable":{"read":"2Gi"}}}\''
    )
    await stage.client.report_disk(_MEASURED, {"allocatable": {"read": "2Gi"}})
    await stage.until(
        f"its disk was measured to be faster, so the third goes to {_MEASURED}",
        lambda: _ingest_nodes(stage) == {*_FAST, _MEASURED},
        lambda: sorted(_ingest_nodes(stage)),
    )


def _ingest_nodes(stage: Stage) -> set[str]:
    return {pod.node for pod in stage.pods.with_node("ingest")}


def _ingest_refusal(stage: Stage) -> str:
    waiting = [pod.refusal for pod in stage.pods.of("ingest") if not pod.node]
    return waiting[0] if waiting else ""


DISKS = Chapter(
    "Disks that can take it",
    """\
Three pods read 1.5 GiB/s each. NodeDiskIOStatus objects say what disks can do:
two nodes have 2 GiB/s, four have 200 MiB/s. DiskIO counts what is left.""",
    _play_disks,
)
_FULL, _VICTIMS = {"small-0": 4, "small-1": 4}, 2


async def _play_preemption(stage: Stage) -> None:
    """A pod that others make way for."""
    stage.narrator.show_command("kubectl apply -f batch.yaml")
    await stage.client.apply("batch.yaml")
    await stage.until(
        "the small nodes have four pods each",
        lambda: _per_node(stage) == _FULL,
        lambda: dict(_per_node(stage)),
    )
    before = {pod.name for pod in stage.pods.of("batch")}
    stage.narrator.show_command("kubectl apply -f urgent.yaml")
    await stage.client.apply("urgent.yaml")

    def node() -> str:
        pod = stage.pods.find("urgent")
        return pod.node if pod else ""

    await stage.until("urgent has a node", lambda: bool(node()), lambda: "it waits")
    gone = before - {pod.name for pod in stage.pods.of("batch")}
    stage.promise("two pods had to go for it", len(gone) == _VICTIMS, sorted(gone))
    pod = stage.pods.find("urgent")
    message = f"Preempted by pod {pod.metadata.uid if pod else ''} on node {node()}"
    await stage.until_event("their events say why", "Preempted", message, _VICTIMS)
    await stage.until(
        "the job has made two others, which wait for room",
        lambda: len([each for each in stage.pods.of("batch") if each.refusal]) == _VICTIMS,
        lambda: [(each.name, each.node) for each in stage.pods.of("batch")],
    )


def _per_node(stage: Stage) -> Counter[str]:
    return Counter(pod.node for pod in stage.pods.with_node("batch"))


PREEMPTION = Chapter(
    "Others make way",
    """\
Eight pods of no importance fill the two small nodes. An urgent one comes and
needs as much as two of them. No more than two have to go, and are told why.""",
    _play_preemption,
)
_MOST_SHOWN = 3
_ASKED_MILLI = 16_000


async def _play_explaining(stage: Stage) -> None:
    """A pod that waits, why, and what helps."""
    stage.narrator.show_command("kubectl apply -f report.yaml")
    await stage.client.apply("report.yaml")

    def refusal() -> str:
        pod = stage.pods.find("report")
        return pod.refusal if pod else ""

    await stage.until(
        "report waits", lambda: "Insufficient cpu" in refusal(), lambda: refusal() or "it does not"
    )
    stage.narrator.show_command("mooring explain report --config scheduler.yaml")
    explanation = stage.explain_pod("report")
    first = explanation.suggestions[:_MOST_SHOWN]
    stage.narrator.show_explanation(replace(explanation, suggestions=first))
    await stage.pause()
    await _follow(stage, explanation)


async def _follow(stage: Stage, explanation: Explanation) -> None:
    """Requests as much less as the suggestion says."""
    by, advice = _least_change(explanation)
    asks = f"{_ASKED_MILLI - by}m"
    command = f"sed 's/\"16\"/{asks}/' report.yaml | kubectl replace --force -f -"
    stage.narrator.show_command(command)
    await stage.client.delete("Pod", "report")
    await stage.until_gone("report")
    for item in load_objects("report.yaml"):
        item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = asks
        await stage.client.create(item)

    def node() -> str:
        pod = stage.pods.find("report")
        return pod.node if pod else ""

    await stage.until(
        "the advice was right: report has a node", lambda: bool(node()), lambda: "it waits"
    )
    stage.promise(
        f"it is one of the {advice.count} that were named: {node()}", node() in advice.nodes, node()
    )


def _least_change(explanation: Explanation) -> tuple[int, Suggestion]:
    """Returns the millicores less that are enough for some nodes, and what was said about it."""
    found = []
    for each in explanation.suggestions:
        match each.edits:
            case (LowerRequest(resource="cpu", by=by),) if each.effect == "fits":
                found.append((by, each))
    if not found:
        raise BrokenPromise(
            "less cpu would help", str([each.remedy for each in explanation.suggestions])
        )
    return min(found, key=lambda each: each[0])


EXPLANATION = Chapter(
    "Why is my pod pending?",
    """\
It asks for 16 cores, and the workers have 16. Still it waits.
Mooring says why, and what would help. We take its word for it.""",
    _play_explaining,
)


_CLAIMING, _DEVICES_PER_NODE = 15, 8


async def _play_devices(stage: Stage) -> None:
    """Devices that are handed out by claim."""
    stage.narrator.show_command("kubectl apply -f devices.yaml")
    await stage.client.apply("devices.yaml")
    await stage.until(
        "fifteen pods have an accelerator each",
        lambda: len(stage.pods.with_node("infer")) == _CLAIMING,
        lambda: f"{len(stage.pods.with_node('infer'))} have one",
    )
    await stage.until(
        "model and monitor share one, on the same node",
        lambda: _node(stage, "model") != "" and _node(stage, "model") == _node(stage, "monitor"),
        lambda: [_node(stage, name) for name in ("model", "monitor")],
    )
    stage.promise(
        "no node has given away more than eight",
        max(_claims(stage).values()) <= _DEVICES_PER_NODE,
        dict(_claims(stage)),
    )
    stage.narrator.show_command("kubectl apply -f late.yaml")
    await stage.client.apply("late.yaml")
    await stage.until(
        "late waits",
        lambda: "cannot allocate all claims" in _late_refusal(stage),
        lambda: "it does not",
    )
    stage.narrator.show_quote(_late_refusal(stage).partition(". ")[0])
    await stage.pause()
    stage.narrator.show_command("kubectl delete pod model monitor")
    for name in ("model", "monitor"):
        await stage.client.delete("Pod", name)
    await stage.until(
        "nobody uses the shared one any more, so late gets it",
        lambda: _node(stage, "late") != "",
        lambda: _late_refusal(stage) or "it waits",
    )


def _claims(stage: Stage) -> Counter[str]:
    """Returns how many claims have a device on each node; the shared one counts once."""
    pods = [*stage.pods.with_node("infer"), *stage.pods.with_node("model")]
    return Counter(pod.node for pod in pods)


def _late_refusal(stage: Stage) -> str:
    pod = stage.pods.find("late")
    return pod.refusal if pod else ""


DEVICES = Chapter(
    "Devices by claim",
    """\
Two nodes publish eight accelerators each. Fifteen pods claim one of their own,
and two share one. Another pod waits until one is free again.""",
    _play_devices,
)
