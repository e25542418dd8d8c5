"""`mooring up`: a whole cluster to play with, in one process."""

from __future__ import annotations

import asyncio
import signal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import LogLevel, PluginsOption
from .text import plain

if TYPE_CHECKING:
    from mooring.app.up import Ready


class Scheduling(StrEnum):
    """How the scheduler talks to the API server."""

    DIRECT = "direct"
    HTTP = "http"
    NONE = "none"


_SERVER, _PODS, _SCHEDULER = "API server", "Pods", "Scheduler"


def up(  # noqa: PLR0913 - one for each flag
    nodes: Annotated[
        str,
        typer.Option(
            metavar="COUNT|FILE",
            help="How many nodes, or a file with their shapes (docs/embedded-cluster.md).",
        ),
    ] = "10",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write how to get there; else a temporary file."
        ),
    ] = None,
    for_seconds: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="SECONDS",
            min=0.0,
            help="Stop so long after it is ready, for scripts; else when told to.",
        ),
    ] = None,
    listen: Annotated[str, typer.Option(metavar="ADDRESS", rich_help_panel=_SERVER)] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="0 takes a free one.", rich_help_panel=_SERVER),
    ] = 0,
    token: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            envvar="MOORING_UP_TOKEN",
            help="What clients must know; else a random one.",
            rich_help_panel=_SERVER,
        ),
    ] = "",
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep the cluster here, and go on with it next time; else it lives in memory.",
            rich_help_panel=_SERVER,
        ),
    ] = None,
    run_seconds: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="How long pods run before they succeed, unless they are restarted for ever.",
            rich_help_panel=_PODS,
        ),
    ] = 10.0,
    start_seconds: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="SECONDS", help="How long they take to start.", rich_help_panel=_PODS
        ),
    ] = 0.0,
    stop_seconds: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="How long they take to stop, their grace period at most.",
            rich_help_panel=_PODS,
        ),
    ] = 1.0,
    scheduler: Annotated[
        Scheduling,
        typer.Option(
            help="How the scheduler talks to the API server; `none` leaves room for another.",
            rich_help_panel=_SCHEDULER,
        ),
    ] = Scheduling.DIRECT,
    no_scheduler: Annotated[
        bool, typer.Option("--no-scheduler", help="As none.", rich_help_panel=_SCHEDULER)
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A KubeSchedulerConfiguration.", rich_help_panel=_SCHEDULER
        ),
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(metavar="A=true,B=false", help="Feature gates to switch.")
    ] = "",
    plugins: PluginsOption = None,
    log_level: Annotated[LogLevel, typer.Option()] = LogLevel.WARNING,
) -> None:
    """Run a cluster in one process: API server, nodes without containers, and the scheduler.

    Everything but the containers is real: kubectl and other clients work. Stops with Ctrl-C.
    """
    # Here, so that the other commands start without them.
    import uvloop

    from mooring.app import logs
    from mooring.app.observations import Observations
    from mooring.app.up import Reach, UpSettings
    from mooring.app.up import up as run_cluster
    from mooring.config import FeatureGates
    from mooring.embedded.hollow.settings import HollowSettings
    from mooring.embedded.settings import Settings

    from .cluster_file import read_cluster
    from .scheduler import Deciding

    logs.configure(logs.LogSettings(level=log_level.value))
    observations = Observations()
    deciding = Deciding(config, feature_gates, plugins, election={"leader_elect": False})
    chosen = deciding.engine(observations)
    coexist = FeatureGates.from_text(feature_gates).enabled("CoexistPolicy")
    cluster = read_cluster(nodes)
    server: dict[str, Any] = {"token": token} if token else {}
    settings = UpSettings(
        server=Settings(host=listen, port=port, data_dir=data_dir, coexist=coexist, **server),
        nodes=cluster.nodes,
        manifests=cluster.manifests,
        hollow=HollowSettings(
            start_seconds=start_seconds,
            run_seconds=run_seconds,
            stop_seconds=stop_seconds,
            coexist=coexist,
        ),
        reach=Reach.NONE if no_scheduler else Reach(scheduler.value),
        kubeconfig=kubeconfig,
    )

    async def main() -> None:
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)

        def ready(cluster: Ready) -> None:
            _show(cluster)
            if for_seconds is not None:
                loop.call_later(for_seconds, stopping.set)

        await run_cluster(settings, chosen, observations, ready, stopping)

    uvloop.run(main())


def _show(cluster: Ready) -> None:
    from mooring.objects.coexist import ANNOTATION
    from mooring.objects.coexist import DAEMONSET_AND_STATIC_PODS as EXCLUSIVE

    kubeconfig = plain(str(cluster.kubeconfig))
    if cluster.endpoints:
        scheduler = (
            f"Mooring; its page: {cluster.endpoints}/ui/ (any token will do)\n"
            f"           its metrics: curl -k {cluster.endpoints}/metrics"
        )
    else:
        scheduler = f"none; to run one: mooring run --kubeconfig {kubeconfig}"
    print(
        f"""The cluster is ready: {cluster.nodes} nodes, {cluster.server}
Scheduler: {scheduler}

In another terminal:
  export KUBECONFIG={kubeconfig}
  kubectl get nodes -L topology.kubernetes.io/zone
  kubectl run hello --image=registry.example/hello && kubectl get pods -o wide
  kubectl run alone --image=registry.example/alone --annotations={ANNOTATION}={EXCLUSIVE}

More to try is in docs/embedded-cluster.md and examples/embedded. Ctrl-C stops it.""",
        flush=True,
    )
