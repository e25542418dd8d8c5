"""Chapters on what is scarce: GPUs, disks, devices, room for an urgent pod; what helps a pod."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from moorage.engine.explain import Explanation, Suggestion
from moorage.framework.edits import LowerRequest

from .demo_client import load_objects
from .demo_context import Chapter, CheckFailed, DemoContext


async def _play_gpus(demo: DemoContext) -> None:
    """GPU nodes that are kept for those who use GPUs."""
    demo.display.show_command("kubectl apply -f gpus.yaml")
    await demo.client.apply("gpus.yaml")
    await demo.until(
        "with-gpu is on a GPU node",
        lambda: _node(demo, "with-gpu").startswith("gpu-"),
        lambda: f"it is on {_node(demo, 'with-gpu') or 'no node'}",
    )

    def refusal() -> str:
        pod = demo.pods.find("without-gpu")
        return pod.refusal if pod else ""

    await demo.until(
        "without-gpu waits, because of GPUAware",
        lambda: "node(s) with GPUs only take pods with a GPU limit" in refusal(),
        lambda: refusal() or f"it is on {_node(demo, 'without-gpu') or 'no node'}",
    )
    demo.display.show_quote(refusal().partition(". ")[0])
    others = [
        pod.name
        for pod in demo.pods
        if pod.node.startswith("gpu-") and not pod.is_daemon and pod.name != "with-gpu"
    ]
    demo.check("but for daemons, no other pod is on a GPU node", not others, others)


def _node(demo: DemoContext, name: str) -> str:
    pod = demo.pods.find(name)
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


async def _play_disks(demo: DemoContext) -> None:
    """Disk bandwidth, which Kubernetes does not count."""
    demo.display.show_command("kubectl apply -f ingest.yaml")
    await demo.client.apply("ingest.yaml")
    await demo.until(
        "each fast disk has one of them",
        lambda: _ingest_nodes(demo) == _FAST and len(demo.pods.with_node("ingest")) == len(_FAST),
        lambda: sorted(_ingest_nodes(demo)),
    )
    await demo.until(
        "the third waits",
        lambda: "Insufficient disk read bandwidth" in _ingest_refusal(demo),
        lambda: _ingest_refusal(demo) or "it was not refused",
    )
    demo.display.show_quote(_ingest_refusal(demo).partition(". ")[0])
    await demo.pause()
    demo.display.show_command(
        f"kubectl patch nodediskiostatus {_MEASURED} --subresource=status \\\n"
        '  --type=merge -p \'{"status":{"allocatable":{"read":"2Gi"}}}\''
    )
    await demo.client.report_disk(_MEASURED, {"allocatable": {"read": "2Gi"}})
    await demo.until(
        f"its disk was measured to be faster, so the third goes to {_MEASURED}",
        lambda: _ingest_nodes(demo) == {*_FAST, _MEASURED},
        lambda: sorted(_ingest_nodes(demo)),
    )


def _ingest_nodes(demo: DemoContext) -> set[str]:
    return {pod.node for pod in demo.pods.with_node("ingest")}


def _ingest_refusal(demo: DemoContext) -> str:
    waiting = [pod.refusal for pod in demo.pods.of("ingest") if not pod.node]
    return waiting[0] if waiting else ""


DISKS = Chapter(
    "Disks that can take it",
    """\
Three pods read 1.5 GiB/s each. NodeDiskIOStatus objects say what disks can do:
two nodes have 2 GiB/s, four have 200 MiB/s. DiskIO counts what is left.""",
    _play_disks,
)
_FULL, _VICTIMS = {"small-0": 4, "small-1": 4}, 2


async def _play_preemption(demo: DemoContext) -> None:
    """A pod that others make way for."""
    demo.display.show_command("kubectl apply -f batch.yaml")
    await demo.client.apply("batch.yaml")
    await demo.until(
        "the small nodes have four pods each",
        lambda: _per_node(demo) == _FULL,
        lambda: dict(_per_node(demo)),
    )
    before = {pod.name for pod in demo.pods.of("batch")}
    demo.display.show_command("kubectl apply -f urgent.yaml")
    await demo.client.apply("urgent.yaml")

    def node() -> str:
        pod = demo.pods.find("urgent")
        return pod.node if pod else ""

    await demo.until("urgent has a node", lambda: bool(node()), lambda: "it waits")
    gone = before - {pod.name for pod in demo.pods.of("batch")}
    demo.check("two pods had to go for it", len(gone) == _VICTIMS, sorted(gone))
    pod = demo.pods.find("urgent")
    message = f"Preempted by pod {pod.metadata.uid if pod else ''} on node {node()}"
    await demo.until_event("their events say why", "Preempted", message, _VICTIMS)
    await demo.until(
        "the job has made two others, which wait for room",
        lambda: len([each for each in demo.pods.of("batch") if each.refusal]) == _VICTIMS,
        lambda: [(each.name, each.node) for each in demo.pods.of("batch")],
    )


def _per_node(demo: DemoContext) -> Counter[str]:
    return Counter(pod.node for pod in demo.pods.with_node("batch"))


PREEMPTION = Chapter(
    "Others make way",
    """\
Eight pods of no importance fill the two small nodes. An urgent one comes and
needs as much as two of them. At most two have to go; their events say why.""",
    _play_preemption,
)
_MOST_SHOWN = 3
_ASKED_MILLI = 16_000


async def _play_explaining(demo: DemoContext) -> None:
    """A pod that waits, why, and what helps."""
    demo.display.show_command("kubectl apply -f report.yaml")
    await demo.client.apply("report.yaml")

    def refusal() -> str:
        pod = demo.pods.find("report")
        return pod.refusal if pod else ""

    await demo.until(
        "report waits", lambda: "Insufficient cpu" in refusal(), lambda: refusal() or "it does not"
    )
    demo.display.show_command("moorage explain report --config scheduler.yaml")
    explanation = demo.explain_pod("report")
    first = explanation.suggestions[:_MOST_SHOWN]
    demo.display.show_explanation(replace(explanation, suggestions=first))
    await demo.pause()
    await _follow(demo, explanation)


async def _follow(demo: DemoContext, explanation: Explanation) -> None:
    """Requests as much less as the suggestion says."""
    by, advice = _least_change(explanation)
    asks = f"{_ASKED_MILLI - by}m"
    command = f"sed 's/\"16\"/{asks}/' report.yaml | kubectl replace --force -f -"
    demo.display.show_command(command)
    await demo.client.delete("Pod", "report")
    await demo.until_gone("report")
    for item in load_objects("report.yaml"):
        item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = asks
        await demo.client.create(item)

    def node() -> str:
        pod = demo.pods.find("report")
        return pod.node if pod else ""

    await demo.until(
        "the advice was right: report has a node", lambda: bool(node()), lambda: "it waits"
    )
    demo.check(
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
        raise CheckFailed(
            "less cpu would help", str([each.remedy for each in explanation.suggestions])
        )
    return min(found, key=lambda each: each[0])


EXPLANATION = Chapter(
    "Why is my pod pending?",
    """\
It asks for 16 cores, and the workers have 16. Still it waits.
Moorage says why, and what would help. We take its word for it.""",
    _play_explaining,
)


_CLAIMING, _DEVICES_PER_NODE = 15, 8


async def _play_devices(demo: DemoContext) -> None:
    """Devices that are handed out by claim."""
    demo.display.show_command("kubectl apply -f devices.yaml")
    await demo.client.apply("devices.yaml")
    await demo.until(
        "fifteen pods have an accelerator each",
        lambda: len(demo.pods.with_node("infer")) == _CLAIMING,
        lambda: f"{len(demo.pods.with_node('infer'))} have one",
    )
    await demo.until(
        "model and monitor share one, on the same node",
        lambda: _node(demo, "model") != "" and _node(demo, "model") == _node(demo, "monitor"),
        lambda: [_node(demo, name) for name in ("model", "monitor")],
    )
    demo.check(
        "no node has given away more than eight",
        max(_claims(demo).values()) <= _DEVICES_PER_NODE,
        dict(_claims(demo)),
    )
    demo.display.show_command("kubectl apply -f late.yaml")
    await demo.client.apply("late.yaml")
    await demo.until(
        "late waits",
        lambda: "cannot allocate all claims" in _late_refusal(demo),
        lambda: "it does not",
    )
    demo.display.show_quote(_late_refusal(demo).partition(". ")[0])
    await demo.pause()
    demo.display.show_command("kubectl delete pod model monitor")
    for name in ("model", "monitor"):
        await demo.client.delete("Pod", name)
    await demo.until(
        "the shared one is free, so late gets it",
        lambda: _node(demo, "late") != "",
        lambda: _late_refusal(demo) or "it waits",
    )


def _claims(demo: DemoContext) -> Counter[str]:
    """Returns how many claims have a device on each node; the shared one counts once."""
    pods = [*demo.pods.with_node("infer"), *demo.pods.with_node("model")]
    return Counter(pod.node for pod in pods)


def _late_refusal(demo: DemoContext) -> str:
    pod = demo.pods.find("late")
    return pod.refusal if pod else ""


DEVICES = Chapter(
    "Devices by claim",
    """\
Two nodes publish eight accelerators each. Fifteen pods claim one of their own,
and two share one. Another pod waits until one is free again.""",
    _play_devices,
)
