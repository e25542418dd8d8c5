"""A pod that waits, why, and what helps."""

from __future__ import annotations

from mooring.demo.cast import objects
from mooring.demo.promises import BrokenPromise
from mooring.demo.stage import Stage
from mooring.engine.explain import Explanation, Suggestion
from mooring.framework.edits import LowerRequest

TITLE = "Why is my pod pending?"
ABOUT = """\
It asks for 16 cores, and the workers have 16. Still it waits.
Mooring says why, and what would help. We take its word for it."""

_MOST_SHOWN = 3
_ASKED_MILLI = 16_000


async def play(stage: Stage) -> None:
    stage.tell.typed("kubectl apply -f report.yaml")
    await stage.client.apply("report.yaml")

    def refusal() -> str:
        pod = stage.pods.named("report")
        return pod.refusal if pod else ""

    await stage.until(
        "report waits", lambda: "Insufficient cpu" in refusal(), lambda: refusal() or "it does not"
    )
    stage.tell.typed("mooring explain report --config scheduler.yaml")
    told = stage.explained("report")
    rows = [(_nodes(each), each.remedy, each.problem) for each in told.suggestions[:_MOST_SHOWN]]
    stage.tell.table(("WOULD FIT", "IF", "BECAUSE"), rows)
    await stage.pause()
    await _follow(stage, told)


def _nodes(suggestion: Suggestion) -> str:
    return suggestion.nodes[0] if suggestion.count == 1 else f"{suggestion.count} nodes"


async def _follow(stage: Stage, told: Explanation) -> None:
    """Asks for as little less as was said to help."""
    by, advice = _least_change(told)
    asks = f"{_ASKED_MILLI - by}m"
    stage.tell.typed(f"sed 's/\"16\"/{asks}/' report.yaml | kubectl replace --force -f -")
    await stage.client.delete("Pod", "report")
    await stage.until_gone("report")
    for item in objects("report.yaml"):
        item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = asks
        await stage.client.create(item)

    def node() -> str:
        pod = stage.pods.named("report")
        return pod.node if pod else ""

    await stage.until(
        "the advice was right: report has a node", lambda: bool(node()), lambda: "it waits"
    )
    stage.promise(
        f"it is one of the {advice.count} that were told: {node()}", node() in advice.nodes, node()
    )


def _least_change(told: Explanation) -> tuple[int, Suggestion]:
    """The millicores less that are enough for some nodes, and what was said about it."""
    found = []
    for each in told.suggestions:
        match each.edits:
            case (LowerRequest(resource="cpu", by=by),) if each.effect == "fits":
                found.append((by, each))
    if not found:
        raise BrokenPromise("less cpu would help", str([each.remedy for each in told.suggestions]))
    return min(found, key=lambda each: each[0])
