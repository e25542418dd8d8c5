"""Disk bandwidth, which Kubernetes does not count."""

from __future__ import annotations

from mooring.demo.stage import Stage

TITLE = "Disks that can take it"
ABOUT = """\
Three pods read 1.5 GiB/s each. NodeDiskIOStatus objects say what disks can do:
two nodes have 2 GiB/s, four have 200 MiB/s. DiskIO counts what is left."""

_FAST = {"disk-fast-0", "disk-fast-1"}
_MEASURED = "disk-slow-2"


async def play(stage: Stage) -> None:
    stage.tell.typed("kubectl apply -f ingest.yaml")
    await stage.client.apply("ingest.yaml")
    await stage.until(
        "each fast disk has one of them",
        lambda: _nodes(stage) == _FAST and len(stage.pods.placed("ingest")) == len(_FAST),
        lambda: sorted(_nodes(stage)),
    )
    await stage.until(
        "the third waits",
        lambda: "Insufficient disk read bandwidth" in _refusal(stage),
        lambda: _refusal(stage) or "it was not refused",
    )
    stage.tell.quoted(_refusal(stage).partition(". ")[0])
    await stage.pause()
    stage.tell.typed(
        f"kubectl patch nodediskiostatus {_MEASURED} --subresource=status \\\n"
        '  --type=merge -p \'{"status":{"allocatable":{"read":"2Gi"}}}\''
    )
    await stage.client.report_disk(_MEASURED, {"allocatable": {"read": "2Gi"}})
    await stage.until(
        f"its disk was measured to be faster, so the third goes to {_MEASURED}",
        lambda: _nodes(stage) == {*_FAST, _MEASURED},
        lambda: sorted(_nodes(stage)),
    )


def _nodes(stage: Stage) -> set[str]:
    return {pod.node for pod in stage.pods.placed("ingest")}


def _refusal(stage: Stage) -> str:
    waiting = [pod.refusal for pod in stage.pods.of("ingest") if not pod.node]
    return waiting[0] if waiting else ""
