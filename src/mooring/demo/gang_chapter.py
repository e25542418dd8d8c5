"""The chapter on gangs: two that would block each other elsewhere, one that waits for a rack."""

from __future__ import annotations

from .stage import Chapter, Stage

_GANG, _TIGHT = 6, 4
_RIVALS = ("red", "blue")


async def _play_gangs(stage: Stage) -> None:
    """All of a job or nothing of it."""
    stage.narrator.show_command("kubectl apply -f gangs.yaml")
    await stage.client.apply("gangs.yaml")
    await stage.until(
        "one gang has all six of its pods on nodes",
        lambda: _GANG in _sizes(stage),
        lambda: dict(zip(_RIVALS, _sizes(stage), strict=True)),
    )
    winner, loser = sorted(_RIVALS, key=lambda name: -len(stage.pods.with_node(name)))
    await stage.until(
        f"{loser} waits and holds nothing",
        lambda: bool(_refusals(stage, loser)) and not stage.pods.with_node(loser),
        lambda: f"{len(stage.pods.with_node(loser))} of its pods have a node",
    )
    await stage.pause()
    await _play_rack(stage, winner, loser)


async def _play_rack(stage: Stage, winner: str, loser: str) -> None:
    stage.narrator.show_command("kubectl apply -f tight.yaml")
    await stage.client.apply("tight.yaml")
    await stage.until_told("tight waits for a rack", "GangDiagnosis", "In one rack")
    await stage.pause()
    stage.narrator.show_command(f"kubectl delete job {winner} {loser}")
    for name in (winner, loser):
        await stage.client.delete("Job", name)
    await stage.until(
        "tight has all four pods",
        lambda: len(stage.pods.with_node("tight")) == _TIGHT,
        lambda: f"{len(stage.pods.with_node('tight'))} have a node",
    )
    racks = {pod.node.rpartition("-")[0] for pod in stage.pods.with_node("tight")}
    stage.promise("they are all in one rack", len(racks) == 1, sorted(racks))
    stage.narrator.show_command("kubectl delete job tight")
    await stage.client.delete("Job", "tight")
    await stage.until_gone("tight")


def _sizes(stage: Stage) -> list[int]:
    """How many pods of each gang have a node."""
    return [len(stage.pods.with_node(name)) for name in _RIVALS]


def _refusals(stage: Stage, name: str) -> list[str]:
    return [pod.refusal for pod in stage.pods.of(name) if pod.refusal]


GANGS = Chapter(
    "All of a job, or nothing of it",
    """\
Two gangs of six come at once, and there is room for eight. Placed pod by pod,
each would hold what the other needs. A third must have a rack to itself.""",
    _play_gangs,
)
