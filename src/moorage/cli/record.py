"""`moorage record`: record what another scheduler sees and does, for `moorage replay`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    ConfigOption,
    ContextOption,
    EmulationVersionOption,
    FeatureGatesOption,
    ForOption,
    KubeconfigOption,
    LogFormat,
    LogFormatOption,
    LogLevel,
    LogLevelOption,
    MasterOption,
    PluginsOption,
)
from .rendering import count, note

if TYPE_CHECKING:
    from moorage.client import Connection
    from moorage.engine import Engine
    from moorage.record.recorder import Recorder

# Exit code when something could not be written.
_INCOMPLETE = 1


def record(  # noqa: PLR0913 - one for each flag
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The recording: FILE.000001 and so on are written.",
            show_default=False,
        ),
    ],
    for_seconds: ForOption = None,
    max_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Total size of the recording; the oldest segments are deleted."
        ),
    ] = "512Mi",
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    emulation_version: EmulationVersionOption = "",
    plugins: PluginsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Record a cluster that another scheduler serves. Writes nothing to the cluster.

    Each placement is recorded with what Moorage would have done. Needs only the right to list and
    watch the objects that scheduling reads (deploy/shadow).

    Exit code: 0 when stopped, 1 if the recording is incomplete, 2 if it cannot begin.
    """
    # Here, so that the other commands start without what a scheduler needs.
    import uvloop

    from .emulation import choose_version
    from .inputs import ConnectionOptions, EngineOptions
    from .run import configure_logs, record_settings

    configure_logs(log_format, log_level, 0)
    connection = ConnectionOptions(kubeconfig, context, master)
    version = choose_version(emulation_version, connection)
    options = EngineOptions(config, feature_gates, plugins, version=version)
    engine = options.engine(asks_extenders=False)
    settings = record_settings(file, max_size, options, is_beside=True)
    assert settings is not None, "a file is given"
    recorder = settings.begin()

    async def main() -> None:
        await _follow(await connection.reach(), engine, recorder, for_seconds)

    try:
        uvloop.run(main())
    finally:
        recorder.close()
    if recorder.problem:
        note(f"the recording is incomplete: {recorder.problem}")
        raise typer.Exit(_INCOMPLETE)


async def _follow(
    connection: Connection, engine: Engine, recorder: Recorder, seconds: float | None
) -> None:
    from moorage.app.shadow_follower import shadow_cluster

    from .signals import StopSignal

    async with shadow_cluster(connection, engine, recorder) as following:
        print(f"Recording {count(len(engine.cluster.nodes), 'node')}. Ctrl-C stops.", flush=True)
        await StopSignal(seconds).wait()
        print(f"Recorded {count(following.counts.total(), 'placement')}.", flush=True)
