"""`moorage hollow`: keep nodes alive and pods running on any API server, without containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    ContextOption,
    ForOption,
    KubeconfigOption,
    LogFormat,
    LogFormatOption,
    LogLevel,
    LogLevelOption,
    MasterOption,
    RunSecondsOption,
    StartSecondsOption,
    StopSecondsOption,
)
from .rendering import count, note

if TYPE_CHECKING:
    from moorage.app.hollow_cluster import RemoteHollowSettings
    from moorage.embedded.hollow.node_shapes import ShapeFile

    from .inputs import ConnectionOptions

NodesOption = Annotated[
    str,
    typer.Option(
        metavar="COUNT|FILE",
        help="Create this many nodes, or those that a file describes (docs/embedded-cluster.md), "
        "unless they exist.",
    ),
]
AllNodesOption = Annotated[
    bool,
    typer.Option(
        "--all-nodes",
        help="Serve every node, not only those with the label hollow.moorage.dev/node=true. "
        "Not for clusters with real nodes.",
    ),
]


def hollow(  # noqa: PLR0913 - one for each flag
    nodes: NodesOption = "0",
    all_nodes: AllNodesOption = False,
    for_seconds: ForOption = None,
    start_seconds: StartSecondsOption = 0.0,
    run_seconds: RunSecondsOption = 10.0,
    stop_seconds: StopSecondsOption = 1.0,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.WARNING,
) -> None:
    """Run nodes without containers on a real control plane.

    Each node reports that it is ready and renews its lease. Pods that are bound to it are admitted,
    run, end and stop. Clients see what they would see of nodes with kubelets.
    """
    # Here, so that the other commands start without them.
    import asyncio

    from moorage.app.hollow_cluster import SELECTOR, RemoteHollowSettings
    from moorage.embedded.hollow.pod_life import HollowSettings
    from moorage.engine.registry import registry
    from moorage.framework.kubelet_admission import find_admissions

    from .inputs import ConnectionOptions
    from .run import configure_logs
    from .up_cluster import read_cluster_file

    configure_logs(log_format, log_level, 0)
    file = read_cluster_file(nodes).nodes
    lives = HollowSettings(
        start_seconds=start_seconds,
        run_seconds=run_seconds,
        stop_seconds=stop_seconds,
        policies=find_admissions(registry()),
    )
    settings = RemoteHollowSettings(lives, "" if all_nodes else SELECTOR)
    options = ConnectionOptions(kubeconfig, context, master)
    asyncio.run(_look_after(options, file, settings, for_seconds))


async def _look_after(
    options: ConnectionOptions,
    file: ShapeFile,
    settings: RemoteHollowSettings,
    seconds: float | None,
) -> None:
    from moorage.app.hollow_cluster import make_remote_nodes, run_hollow_nodes
    from moorage.client import Api

    from .signals import StopSignal

    async with Api(await options.connect()) as api:
        made = await make_remote_nodes(api, file, settings.selector)
        async with run_hollow_nodes(api, settings) as running:
            for text in made.describe():
                note(text)
            nodes = count(len(running.kubelets.hosts), "node")
            print(f"Serving {nodes}, {made.new} of them new. Ctrl-C stops.", flush=True)
            await StopSignal(seconds).wait()
