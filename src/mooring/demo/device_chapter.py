"""The chapter on devices by claim: one for each pod, one that is shared, one that is waited for."""

from __future__ import annotations

from collections import Counter

from .stage import Chapter, Stage

_PODS, _PER_NODE = 15, 8


async def _play_devices(stage: Stage) -> None:
    """Devices that are handed out by claim."""
    stage.narrator.show_command("kubectl apply -f devices.yaml")
    await stage.client.apply("devices.yaml")
    await stage.until(
        "fifteen pods have an accelerator each",
        lambda: len(stage.pods.with_node("infer")) == _PODS,
        lambda: f"{len(stage.pods.with_node('infer'))} have one",
    )
    await stage.until(
        "model and monitor share one, on the same node",
        lambda: _node(stage, "model") != "" and _node(stage, "model") == _node(stage, "monitor"),
        lambda: [_node(stage, name) for name in ("model", "monitor")],
    )
    stage.promise(
        "no node has given away more than eight",
        max(_claims(stage).values()) <= _PER_NODE,
        dict(_claims(stage)),
    )
    stage.narrator.show_command("kubectl apply -f late.yaml")
    await stage.client.apply("late.yaml")
    await stage.until(
        "late waits", lambda: "cannot allocate all claims" in _refusal(stage), lambda: "it does not"
    )
    stage.narrator.show_quote(_refusal(stage).partition(". ")[0])
    await stage.pause()
    stage.narrator.show_command("kubectl delete pod model monitor")
    for name in ("model", "monitor"):
        await stage.client.delete("Pod", name)
    await stage.until(
        "nobody uses the shared one any more, so late gets it",
        lambda: _node(stage, "late") != "",
        lambda: _refusal(stage) or "it waits",
    )


def _node(stage: Stage, name: str) -> str:
    pod = stage.pods.find(name)
    return pod.node if pod else ""


def _claims(stage: Stage) -> Counter[str]:
    """How many claims have a device on each node; the shared one counts once."""
    pods = [*stage.pods.with_node("infer"), *stage.pods.with_node("model")]
    return Counter(pod.node for pod in pods)


def _refusal(stage: Stage) -> str:
    pod = stage.pods.find("late")
    return pod.refusal if pod else ""


DEVICES = Chapter(
    "Devices by claim",
    """\
Two nodes publish eight accelerators each. Fifteen pods claim one of their own,
and two share one. Another pod waits until one is free again.""",
    _play_devices,
)
