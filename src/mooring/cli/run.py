"""`mooring run`: schedule a real cluster."""

from __future__ import annotations

import socket
import uuid
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mooring.app.recorded import Setup
    from mooring.app.segments import RecordSettings

_CLUSTER, _LEADER, _SERVING = "Connection", "Leader election", "Serving"
_RECORD, _LOGS = "Recording", "Logs"


class Switch(StrEnum):
    """As Kubernetes' components take it: --flag=true."""

    ON = "true"
    OFF = "false"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


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
    secure_port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="Where health, metrics and configuration are served by HTTPS; 0 serves nothing.",
            rich_help_panel=_SERVING,
        ),
    ] = 10259,
    bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", rich_help_panel=_SERVING)
    ] = "0.0.0.0",
    tls_cert_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Its certificate; without one, Mooring signs its own.",
            rich_help_panel=_SERVING,
        ),
    ] = "",
    tls_private_key_file: Annotated[
        str, typer.Option(metavar="FILE", rich_help_panel=_SERVING)
    ] = "",
    cert_dir: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Where a certificate that Mooring signed itself is kept.",
            rich_help_panel=_SERVING,
        ),
    ] = "",
    authorization_always_allow_paths: Annotated[
        str,
        typer.Option(
            metavar="PATH,...",
            help="Paths that need no token; one may end in *.",
            rich_help_panel=_SERVING,
        ),
    ] = "/healthz,/livez,/readyz",
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write down what is seen and decided, for `mooring replay`.",
            rich_help_panel=_RECORD,
        ),
    ] = None,
    record_max_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="How much of it is kept, in all its files.",
            rich_help_panel=_RECORD,
        ),
    ] = "512Mi",
    log_format: Annotated[LogFormat, typer.Option(rich_help_panel=_LOGS)] = LogFormat.TEXT,
    log_level: Annotated[LogLevel, typer.Option(rich_help_panel=_LOGS)] = LogLevel.INFO,
    verbosity: Annotated[
        int,
        typer.Option(
            "-v",
            metavar="NUMBER",
            help="As kube-scheduler's: 4 or more is debug.",
            rich_help_panel=_LOGS,
        ),
    ] = 0,
) -> None:
    """Schedule a real cluster, until stopped.

    Exits with 0 when it was told to stop, 1 when it lost its lead, 2 when it cannot start.
    """
    # Here, so that the other commands start without them.
    import uvloop

    from mooring.app import logs
    from mooring.app.authorization import AuthorizationSettings
    from mooring.app.certificates import CertificateSettings
    from mooring.app.observations import Observations
    from mooring.app.run import Record, Settings, schedule
    from mooring.app.tls_site import ServingSettings
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
    level = logs.level_of(verbosity) if verbosity else log_level.value
    logs.configure(logs.LogSettings(logs.Format(log_format.value), level))
    observations = Observations()
    scheduler = engine(config, feature_gates, election=election, observer=observations)
    certificate = CertificateSettings(tls_cert_file, tls_private_key_file, cert_dir)
    settings = Settings(
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        qps=kube_api_qps,
        burst=kube_api_burst,
        serving=ServingSettings(bind_address, secure_port, certificate) if secure_port else None,
        authorization=AuthorizationSettings(tuple(authorization_always_allow_paths.split(","))),
        record=None
        if record is None
        else Record(record, _setup(config, feature_gates), _limits(record_max_size)),
    )

    async def main() -> int:
        connection = await connect(None if kubeconfig is None else str(kubeconfig), context, master)
        return await schedule(connection, scheduler, observations, settings)

    raise typer.Exit(uvloop.run(main()))


def _setup(config: Path | None, feature_gates: str) -> Setup:
    from mooring.app.recorded import Setup
    from mooring.config import FeatureGates

    text = None if config is None else config.read_text()
    return Setup(config=text, feature_gates=dict(FeatureGates.from_text(feature_gates)))


def _limits(size: str) -> RecordSettings:
    from mooring.app.segments import RecordSettings
    from mooring.objects.quantity import Quantity
    from mooring.simulate.problems import InputError

    try:
        most = Quantity.parse(size).value
    except ValueError as error:
        raise InputError("--record-max-size", str(error)) from error
    return RecordSettings(most_bytes=most)
