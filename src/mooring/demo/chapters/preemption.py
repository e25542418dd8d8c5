"""A pod that others make way for."""

from __future__ import annotations

from collections import Counter

from mooring.demo.stage import Stage

TITLE = "Others make way"
ABOUT = """\
Eight pods of no importance fill the two small nodes. An urgent one comes and
needs as much as two of them. No more than two have to go, and are told why."""

_FULL, _VICTIMS = {"small-0": 4, "small-1": 4}, 2


async def play(stage: Stage) -> None:
    stage.tell.typed("kubectl apply -f batch.yaml")
    await stage.client.apply("batch.yaml")
    await stage.until(
        "the small nodes have four pods each",
        lambda: _per_node(stage) == _FULL,
        lambda: dict(_per_node(stage)),
    )
    before = {pod.name for pod in stage.pods.of("batch")}
    stage.tell.typed("kubectl apply -f urgent.yaml")
    await stage.client.apply("urgent.yaml")

    def node() -> str:
        pod = stage.pods.named("urgent")
        return pod.node if pod else ""

    await stage.until("urgent has a node", lambda: bool(node()), lambda: "it waits")
    gone = before - {pod.name for pod in stage.pods.of("batch")}
    stage.promise("two pods had to go for it", len(gone) == _VICTIMS, sorted(gone))
    pod = stage.pods.named("urgent")
    message = f"Preempted by pod {pod.metadata.uid if pod else ''} on node {node()}"
    await stage.until_told("their events say why", "Preempted", message, _VICTIMS)
    await stage.until(
        "the job has made two others, which wait for room",
        lambda: len([each for each in stage.pods.of("batch") if each.refusal]) == _VICTIMS,
        lambda: [(each.name, each.node) for each in stage.pods.of("batch")],
    )


def _per_node(stage: Stage) -> Counter[str]:
    return Counter(pod.node for pod in stage.pods.placed("batch"))
