"""`mooring shadow`: run read-only beside another scheduler and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    AnswerFormat,
    ConfigOption,
    ContextOption,
    FeatureGatesOption,
    ForOption,
    KubeconfigOption,
    MasterOption,
    OutputOption,
    PluginsOption,
)
from .rendering import plain, print_data

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.engine import Engine
    from mooring.world.shadow_judge import ShadowReport

EveryOption = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=1.0, help="Print figures this often.")
]
ReportOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the report here in the end: .json or .html."),
]


def shadow(  # noqa: PLR0913 - one for each flag
    for_seconds: ForOption = None,
    every: EveryOption = 60.0,
    report: ReportOption = None,
    output: OutputOption = AnswerFormat.TABLE,
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
) -> None:
    """Watch another scheduler, decide each pod that it places, and compare. Writes nothing.

    Needs the right to list and watch what scheduling reads (deploy/shadow), and no other.

    Exit code: 0 when stopped, 2 if the cluster or the configuration cannot be used.
    """
    # Here, so that the other commands start without what a scheduler needs.
    import asyncio

    from .inputs import ConnectionOptions, EngineOptions

    engine = EngineOptions(config, feature_gates, plugins).engine(asks_extenders=False)
    options = ConnectionOptions(kubeconfig, context, master)

    async def main() -> ShadowReport:
        return await _watch(await options.reach(), engine, for_seconds, every)

    found = asyncio.run(main())
    if report is not None:
        write_report(found, report)
    print_data(found, output)


async def _watch(
    connection: Connection, engine: Engine, seconds: float | None, every: float
) -> ShadowReport:
    from mooring.app.shadow import shadow_cluster

    from .signals import StopSignal

    async with shadow_cluster(connection, engine) as following:
        print(f"Watching {len(engine.cluster.nodes)} nodes. Ctrl-C stops.", flush=True)
        stop = StopSignal(seconds)
        while not stop.came:
            await stop.wait(every)
            _print(following.report())
        return following.report()


def _print(report: ShadowReport) -> None:
    from mooring.world.shadow_judge import describe

    print("\n".join(map(plain, describe(report))), flush=True)


def write_report(report: ShadowReport, path: Path) -> None:
    """Writes a report as JSON, or as a page if the name ends in .html."""
    import msgspec

    if path.suffix == ".html":
        path.write_text(make_page(report))
    else:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))


def make_page(report: ShadowReport) -> str:
    """The report as a page that needs nothing else."""
    from html import escape

    from mooring.world.shadow_judge import describe

    rows = "".join(
        f"<tr><td>{escape(each.pod)}<td>{escape(each.agreement)}<td>{escape(each.theirs)}"
        f"<td>{each.their_score}<td>{escape(each.ours)}<td>{each.our_score}"
        for each in report.differences
    )
    summary = escape("\n".join(describe(report)))
    return (
        '<!doctype html><meta charset="utf-8"><title>Mooring beside another scheduler</title>'
        "<style>body{font:15px/1.5 system-ui;margin:2em;color-scheme:light dark}"
        "td,th{padding:.2em 1em .2em 0;text-align:left}</style>"
        f"<h1>Mooring beside another scheduler</h1><pre>{summary}</pre>"
        "<h2>Differences</h2><table><tr><th>Pod<th>How<th>Theirs<th>Score<th>Ours<th>Score"
        f"{rows}</table>"
    )
