"""`moorage shadow`: run read-only beside another scheduler and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    AnswerFormat,
    ConfigOption,
    ContextOption,
    EmulationVersionOption,
    FeatureGatesOption,
    ForOption,
    KubeconfigOption,
    MasterOption,
    OutputOption,
    PluginsOption,
)
from .rendering import count, plain, print_data

if TYPE_CHECKING:
    from moorage.world.shadow_judge import Shadow
    from moorage.world.shadow_report import ShadowReport


EveryOption = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=1.0, help="Print figures this often.")
]
ReportOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a report as JSON to this file at the end."),
]


def shadow(  # noqa: PLR0913 - one for each flag
    for_seconds: ForOption = None,
    every: EveryOption = 60.0,
    report: ReportOption = None,
    output: OutputOption = AnswerFormat.TABLE,
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    emulation_version: EmulationVersionOption = "",
    plugins: PluginsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
) -> None:
    """Watch another scheduler, decide each pod that it places, and compare. Writes nothing.

    Needs only the right to list and watch the objects that scheduling reads (deploy/shadow).

    Exit code: 0 when stopped, 2 if the cluster or the configuration cannot be used.
    """
    # Here, so that the other commands start without what a scheduler needs.
    import uvloop

    from moorage.app.shadow_follower import shadow_cluster

    from .emulation import choose_version
    from .inputs import ConnectionOptions, EngineOptions

    options = ConnectionOptions(kubeconfig, context, master)
    version = choose_version(emulation_version, options)
    options_of_engine = EngineOptions(config, feature_gates, plugins, version=version)
    engine = options_of_engine.engine(asks_extenders=False)

    async def main() -> Shadow:
        connection = await options.reach()
        async with shadow_cluster(connection, engine) as shadow:
            nodes = count(len(engine.cluster.nodes), "node")
            print(f"Watching {nodes}. Ctrl-C stops.", flush=True)
            await _print_reports(shadow, for_seconds, every)
            return shadow

    seen = uvloop.run(main())
    found = seen.report()
    _print(found)
    if report is not None:
        write_report(found, report)
    print_data(found, output)


async def _print_reports(shadow: Shadow, seconds: float | None, every: float) -> None:
    from .signals import StopSignal

    stop = StopSignal(seconds)
    await stop.wait(every)
    while not stop.came:
        _print(shadow.report())
        await stop.wait(every)


def _print(report: ShadowReport) -> None:
    from moorage.world.shadow_report import describe

    print("\n".join(map(plain, describe(report))), flush=True)


def write_report(report: ShadowReport, path: Path) -> None:
    """Writes a report as JSON."""
    import msgspec

    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
