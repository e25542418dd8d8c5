"""Shows live what a shadow has seen so far: a page, the report as JSON, and metrics.

It serves plain HTTP on loopback only, because it names pods and nodes to everybody who asks;
use `kubectl port-forward` to see it from another machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from html import escape

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from moorage.world.cluster_use import ClusterUse, tabulate
from moorage.world.shadow_judge import Shadow
from moorage.world.shadow_report import ShadowReport, describe

from .connections import ConnectionLimits, accept_connections

_LOOPBACK = "127.0.0.1"
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A page that is open is loaded again this often.
_REFRESH_SECONDS = 5


@asynccontextmanager
async def serve_shadow(shadow: Shadow, port: int) -> AsyncIterator[str]:
    """Serves for as long as the context lasts; yields the address."""

    def answer(make: Callable[[ShadowReport], str], kind: str) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            return web.Response(text=make(shadow.report()), headers={"Content-Type": kind})

        return handle

    app = web.Application()
    app.router.add_get("/", answer(_live_page, "text/html; charset=utf-8"))
    app.router.add_get("/report.json", answer(make_json, "application/json"))
    app.router.add_get("/metrics", answer(make_metrics, _METRICS_TYPE))
    async with accept_connections(app, (_LOOPBACK, port), ConnectionLimits()) as bound:
        yield f"http://{_LOOPBACK}:{bound}"


def make_json(report: ShadowReport) -> str:
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def make_metrics(report: ShadowReport) -> str:
    """Returns the figures in Prometheus' text format."""
    return "".join(f"{line}\n" for line in _metric_lines(report))


def _metric_lines(report: ShadowReport) -> Iterator[str]:
    name = "moorage_shadow_placements_total"
    yield f"# HELP {name} Placements of the other scheduler, by how Moorage judges them."
    yield f"# TYPE {name} counter"
    for agreement, count in report.by_agreement.items():
        yield f'{name}{{agreement="{agreement}"}} {count}'
    figures = (
        (
            "moorage_shadow_agreement_percent",
            "Share of placements on a node that Moorage also ranks best.",
            report.agreement,
        ),
        (
            "moorage_shadow_explained_percent",
            "The same, plus placements that sampling of nodes explains.",
            report.explained,
        ),
        (
            "moorage_shadow_placeable_pods",
            "Pods that wait under the other scheduler and that Moorage would place.",
            len(report.placeable),
        ),
        (
            "moorage_shadow_decision_seconds",
            "Mean time that Moorage takes to decide a pod.",
            report.our_seconds,
        ),
        (
            "moorage_shadow_binding_seconds",
            "Mean time until the other scheduler binds a pod.",
            report.their_seconds,
        ),
    )
    yield from _gauges(figures)
    yield from _use_lines(report.use[0]) if report.use else ()


def _use_lines(use: ClusterUse) -> Iterator[str]:
    """Yields figures about the use of the cluster by the other scheduler."""
    by_resource = (
        (
            "moorage_shadow_requested_percent",
            "Share of the allocatable amount that pods request.",
            use.use,
        ),
        (
            "moorage_shadow_fragmented_percent",
            "Share of the free amount that lies in pieces too small for usual pods.",
            use.fragmented,
        ),
    )
    for name, text, values in by_resource:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
        for resource, value in values.items():
            yield f'{name}{{resource="{resource}"}} {value}'
    figures = (
        ("moorage_shadow_nodes_in_use", "Nodes with ordinary pods.", use.nodes_in_use),
        ("moorage_shadow_stranded_gpus", "Free GPUs that no GPU pod can use.", use.stranded_gpus),
        (
            "moorage_shadow_pods_beside_gpus",
            "Pods without GPUs on nodes with GPUs.",
            use.pods_beside_gpus,
        ),
        (
            "moorage_shadow_exclusive_pods_that_share",
            "Exclusive pods that share their node with ordinary pods.",
            use.exclusive_pods_that_share,
        ),
        (
            "moorage_shadow_partial_gangs",
            "Gangs that run with fewer members than their minimum.",
            use.partial_gangs,
        ),
    )
    yield from _gauges(figures)


def _gauges(figures: Iterable[tuple[str, str, float]]) -> Iterator[str]:
    """Yields the lines of gauges without labels: name, help text, value."""
    for name, text, value in figures:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
        yield f"{name} {value}"


def _live_page(report: ShadowReport) -> str:
    return make_page(report, refresh=_REFRESH_SECONDS)


def make_page(report: ShadowReport, refresh: int | None = None) -> str:
    """Returns the report as a page that needs no other file; it may reload itself."""
    rows = "".join(
        f"<tr><td>{escape(each.pod)}<td>{escape(each.agreement)}<td>{escape(each.theirs)}"
        f"<td>{each.their_score}<td>{escape(each.ours)}<td>{each.our_score}"
        f"<td>{escape(each.reason)}"
        for each in reversed(report.differences)
    )
    waiting = "".join(
        f"<tr><td>{escape(pod)}<td>{escape(node)}" for pod, node in report.placeable.items()
    )
    use = "".join(
        f"<tr><th>{escape(name)}" + "".join(f"<td>{escape(cell)}" for cell in cells)
        for name, cells in tabulate(report.use)
    )
    again = "" if refresh is None else f'<meta http-equiv="refresh" content="{refresh}">'
    summary = escape("\n".join(describe(report, with_use=False)))
    return (
        f'<!doctype html><meta charset="utf-8">{again}<title>Moorage beside another scheduler'
        "</title><style>body{font:15px/1.5 system-ui;margin:2em;color-scheme:light dark}"
        "td,th{padding:.2em 1em .2em 0;text-align:left}</style>"
        f"<h1>Moorage beside another scheduler</h1><pre>{summary}</pre>"
        f"<h2>Use of the cluster</h2><table>{use}</table>"
        "<h2>Differences</h2><table><tr><th>Pod<th>How<th>Theirs<th>Score<th>Ours<th>Score<th>Why"
        f"{rows}</table><h2>Waiting there, and placed here</h2>"
        f"<table><tr><th>Pod<th>Node{waiting}</table>"
    )
