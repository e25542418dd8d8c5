"""`mooring run`: schedule a real cluster."""

from __future__ import annotations

import socket
import uuid
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_CLUSTER, _LEADER = "Connection", "Leader election"


class Switch(StrEnum):
    """As Kubernetes' components take it: --flag=true."""

    ON = "true"
    OFF = "false"


def run(  # noqa: PLR0913 - one for each flag
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration.")
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(metavar="A=true,B=false", help="Feature gates to switch.")
    ] = "",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How to reach the API server: else $KUBECONFIG, ~/.kube/config, in-cluster.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A context of it.", rich_help_panel=_CLUSTER),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The API server, in place of its.", rich_help_panel=_CLUSTER
        ),
    ] = None,
    kube_api_qps: Annotated[
        float,
        typer.Option(
            metavar="RATE",
            min=0.0,
            help="Requests a second at most; 0 asks as fast as the API server answers.",
            rich_help_panel=_CLUSTER,
        ),
    ] = 0.0,
    kube_api_burst: Annotated[
        int,
        typer.Option(
            metavar="COUNT",
            min=0,
            help="Requests at once, where there is a rate.",
            rich_help_panel=_CLUSTER,
        ),
    ] = 0,
    leader_elect: Annotated[
        Switch | None,
        typer.Option(
            help="Whether to wait for leadership before scheduling.",
            rich_help_panel=_LEADER,
        ),
    ] = None,
    leader_elect_lease_duration: Annotated[
        str | None, typer.Option(metavar="DURATION", rich_help_panel=_LEADER)
    ] = None,
    leader_elect_renew_deadline: Annotated[
        str | None, typer.Option(metavar="DURATION", rich_help_panel=_LEADER)
    ] = None,
    leader_elect_retry_period: Annotated[
        str | None, typer.Option(metavar="DURATION", rich_help_panel=_LEADER)
    ] = None,
    leader_elect_resource_name: Annotated[
        str | None, typer.Option(metavar="NAME", rich_help_panel=_LEADER)
    ] = None,
    leader_elect_resource_namespace: Annotated[
        str | None, typer.Option(metavar="NAMESPACE", rich_help_panel=_LEADER)
    ] = None,
) -> None:
    """Schedule a real cluster, until stopped.

    Exits with 0 when it was told to stop, 1 when it lost its lead, 2 when it cannot start.
    """
    # Here, so that the other commands start without them.
    import uvloop

    from mooring.app import logs
    from mooring.app.run import Settings, schedule
    from mooring.client.credentials import connect

    from .scheduler import engine

    election = {
        "leader_elect": leader_elect and leader_elect is Switch.ON,
        "lease_duration": leader_elect_lease_duration,
        "renew_deadline": leader_elect_renew_deadline,
        "retry_period": leader_elect_retry_period,
        "resource_name": leader_elect_resource_name,
        "resource_namespace": leader_elect_resource_namespace,
    }
    logs.configure(logs.LogSettings())
    scheduler = engine(config, feature_gates, election=election)
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    settings = Settings(identity, qps=kube_api_qps, burst=kube_api_burst)

    async def main() -> int:
        connection = await connect(None if kubeconfig is None else str(kubeconfig), context, master)
        return await schedule(connection, scheduler, settings)

    raise typer.Exit(uvloop.run(main()))
