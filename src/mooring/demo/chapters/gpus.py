"""GPU nodes that are kept for those who use GPUs."""

from __future__ import annotations

from mooring.demo.stage import Stage

TITLE = "GPUs for those who use them"
ABOUT = """\
Two pods want 32 cores, which only the GPU nodes have. One of them has no use
for a GPU: the plugin GPUAware keeps it off, and lets the other in."""


async def play(stage: Stage) -> None:
    stage.tell.typed("kubectl apply -f gpus.yaml")
    await stage.client.apply("gpus.yaml")
    await stage.until(
        "with-gpu is on a GPU node",
        lambda: _node(stage, "with-gpu").startswith("gpu-"),
        lambda: f"it is on {_node(stage, 'with-gpu') or 'no node'}",
    )

    def refusal() -> str:
        pod = stage.pods.named("without-gpu")
        return pod.refusal if pod else ""

    await stage.until(
        "without-gpu waits, because of GPUAware",
        lambda: "node(s) with GPUs only take pods with a GPU limit" in refusal(),
        lambda: refusal() or f"it is on {_node(stage, 'without-gpu') or 'no node'}",
    )
    stage.tell.quoted(refusal().partition(". ")[0])
    others = [
        pod.name
        for pod in stage.pods
        if pod.node.startswith("gpu-") and not pod.is_daemon and pod.name != "with-gpu"
    ]
    stage.promise("but for daemons, no other pod is on a GPU node", not others, others)


def _node(stage: Stage, name: str) -> str:
    pod = stage.pods.named(name)
    return pod.node if pod else ""
