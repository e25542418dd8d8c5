"""A large job, decided by batches."""

from __future__ import annotations

from math import isfinite
from time import perf_counter

from mooring.demo.figures import Figures
from mooring.demo.stage import Stage

TITLE = "2,000 pods at once"
ABOUT = """\
The pods of a job are all alike. Mooring ranks the nodes for the first of them,
and the others take theirs from that ranking: a batch. The figures are its own."""

_PODS = 2_000
# Others may come in between, and the first of each batch is decided in full.
_SHARE = 0.9


async def play(stage: Stage) -> None:
    before, began = stage.figures(), perf_counter()
    stage.tell.typed("kubectl apply -f render.yaml")
    await stage.client.apply("render.yaml")
    await stage.until(
        "all 2,000 pods have a node",
        lambda: len(stage.pods.placed("render")) == _PODS,
        lambda: f"{len(stage.pods.placed('render'))} of {len(stage.pods.of('render'))} have one",
    )
    took, figures = perf_counter() - began, stage.figures().since(before)
    stage.tell.table(*_told(figures, took))
    share = figures.reused_share
    stage.promise("more than 90% were decided from like pods", share > _SHARE, f"{share:.1%}")
    on_gpus = [pod.name for pod in stage.pods.placed("render") if pod.node.startswith("gpu-")]
    stage.promise("none of them is on a GPU node; chapter 4 tells why", not on_gpus, on_gpus)
    await stage.pause()
    stage.tell.typed("kubectl delete job render")
    await stage.client.delete("Job", "render")
    await stage.until_gone("render")


def _told(figures: Figures, took: float) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
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
    """A bound of a bucket; there is none for what is longer than all of them."""
    return f"<= {1e3 * seconds:.3g} ms" if isfinite(seconds) else "not in the buckets"
