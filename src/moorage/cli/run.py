"""`moorage run`: schedule a real cluster."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    CONNECTION,
    LOGS,
    SERVING,
    BindAddressOption,
    CertDirOption,
    ConfigOption,
    ContextOption,
    EmulationVersionOption,
    FeatureGatesOption,
    KubeconfigOption,
    LogFormat,
    LogFormatOption,
    LogLevel,
    LogLevelOption,
    MasterOption,
    PluginsOption,
    SecurePortOption,
    TlsCertFileOption,
    TlsPrivateKeyFileOption,
)

if TYPE_CHECKING:
    from moorage.app.https_site import ServingSettings
    from moorage.app.main_thread import Record, RunSettings

    from .inputs import ConnectionOptions, EngineOptions

_LEADER, _RECORD = "Leader election", "Recording"


class Switch(StrEnum):
    """A flag in the style of Kubernetes' components: --flag=true."""

    ON = "true"
    OFF = "false"


KubeApiQpsOption = Annotated[
    float,
    typer.Option(
        metavar="RATE",
        min=0.0,
        help="Send at most this many requests per second. 0 takes "
        "clientConnection.qps of the configuration.",
        rich_help_panel=CONNECTION,
    ),
]
KubeApiBurstOption = Annotated[
    int,
    typer.Option(
        metavar="COUNT",
        min=0,
        help="Send at most this many requests at once. 0 takes "
        "clientConnection.burst of the configuration.",
        rich_help_panel=CONNECTION,
    ),
]
LeaderElectOption = Annotated[
    Switch | None,
    typer.Option(
        help="Whether to schedule only while this replica is the leader.",
        rich_help_panel=_LEADER,
    ),
]
LeaseDurationOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How long other replicas wait after the leader's last renewal.",
        rich_help_panel=_LEADER,
    ),
]
RenewDeadlineOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How long the leader tries to renew its lease before it gives up.",
        rich_help_panel=_LEADER,
    ),
]
RetryPeriodOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Time between two tries.", rich_help_panel=_LEADER),
]
LeaseNameOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name of the lease.", rich_help_panel=_LEADER),
]
LeaseNamespaceOption = Annotated[
    str | None,
    typer.Option(metavar="NAMESPACE", help="Namespace of the lease.", rich_help_panel=_LEADER),
]
HungAfterOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Treat a decision that takes longer as hung: /livez fails and the lease expires.",
        rich_help_panel=_LEADER,
    ),
]
ClientCaFileOption = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Accept client certificates that one of these authorities has signed, besides tokens.",
        rich_help_panel=SERVING,
    ),
]
AlwaysAllowPathsOption = Annotated[
    str,
    typer.Option(
        metavar="PATH,...",
        help="Paths that need no token. A path may end in *.",
        rich_help_panel=SERVING,
    ),
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Record all events and decisions in this file, for `moorage replay`.",
        rich_help_panel=_RECORD,
    ),
]
RecordMaxSizeOption = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Total size of the recording; the oldest segments are deleted.",
        rich_help_panel=_RECORD,
    ),
]
VerbosityOption = Annotated[
    int,
    typer.Option(
        "-v",
        metavar="NUMBER",
        help="Log level in the style of kube-scheduler: 4 and above is debug.",
        rich_help_panel=LOGS,
    ),
]


def run(  # noqa: PLR0913 - one for each flag
    invocation: typer.Context,
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    emulation_version: EmulationVersionOption = "",
    plugins: PluginsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
    kube_api_qps: KubeApiQpsOption = 0.0,
    kube_api_burst: KubeApiBurstOption = 0,
    leader_elect: LeaderElectOption = None,
    leader_elect_lease_duration: LeaseDurationOption = None,
    leader_elect_renew_deadline: RenewDeadlineOption = None,
    leader_elect_retry_period: RetryPeriodOption = None,
    leader_elect_resource_name: LeaseNameOption = None,
    leader_elect_resource_namespace: LeaseNamespaceOption = None,
    hung_after: HungAfterOption = "30s",
    secure_port: SecurePortOption = 10259,
    bind_address: BindAddressOption = "0.0.0.0",
    tls_cert_file: TlsCertFileOption = "",
    tls_private_key_file: TlsPrivateKeyFileOption = "",
    cert_dir: CertDirOption = "",
    client_ca_file: ClientCaFileOption = "",
    authorization_always_allow_paths: AlwaysAllowPathsOption = "/healthz,/livez,/readyz",
    record: RecordOption = None,
    record_max_size: RecordMaxSizeOption = "512Mi",
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    verbosity: VerbosityOption = 0,
) -> None:
    """Schedule a real cluster until stopped.

    Exit code: 0 if it was stopped by a signal, 1 if it lost its lease, 2 if it cannot start.
    """
    # Here, so that the other commands start without what a scheduler needs.
    from moorage.app.authorization import AuthorizationSettings
    from moorage.app.https_site import CertificateSettings, ServingSettings
    from moorage.app.main_thread import RunSettings

    from .inputs import ConnectionOptions, EngineOptions

    configure_logs(log_format, log_level, verbosity)
    election = {
        "leader_elect": leader_elect and leader_elect is Switch.ON,
        "lease_duration": leader_elect_lease_duration,
        "renew_deadline": leader_elect_renew_deadline,
        "retry_period": leader_elect_retry_period,
        "resource_name": leader_elect_resource_name,
        "resource_namespace": leader_elect_resource_namespace,
    }
    certificate = CertificateSettings(
        tls_cert_file, tls_private_key_file, cert_dir, client_ca_file=client_ca_file
    )
    serving = ServingSettings(bind_address, secure_port, certificate) if secure_port else None
    connection, options = _add_kubeconfig_and_version(
        ConnectionOptions(kubeconfig, context, master),
        EngineOptions(config, feature_gates, plugins, election=election),
        emulation_version,
        serving,
    )
    settings = RunSettings(
        identity=_make_identity(),
        qps=kube_api_qps,
        burst=kube_api_burst,
        serving=serving,
        authorization=AuthorizationSettings(tuple(authorization_always_allow_paths.split(","))),
        flags=_flags(invocation),
        record=record_settings(record, record_max_size, options),
        hung_seconds=_seconds("--hung-after", hung_after),
    )
    raise typer.Exit(_schedule(connection, options, settings))


def configure_logs(log_format: LogFormat, log_level: LogLevel, verbosity: int) -> None:
    """Configures the log. A verbosity overrides the level."""
    from moorage.app import logs

    level = logs.level_of(verbosity) if verbosity else log_level.value
    logs.configure(logs.LogSettings(logs.Format(log_format.value), level))


def record_settings(
    file: Path | None, size: str, options: EngineOptions, *, is_beside: bool = False
) -> Record | None:
    """Says where and what to record; raises InputError if the size is no quantity."""
    from moorage.app.main_thread import Record
    from moorage.config.extenders import hide_keys
    from moorage.documents.errors import InputError
    from moorage.objects.quantity import Quantity
    from moorage.record.format import Setup
    from moorage.record.segments import RecordSettings

    if file is None:
        return None
    text = options.text
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    if text is not None:
        text = hide_keys(text)
    try:
        most = Quantity.parse(size).value
    except ValueError as error:
        flag = "--max-size" if is_beside else "--record-max-size"
        raise InputError(flag, str(error)) from error
    # A replay needs the setup in order to decide the same.
    setup = Setup(
        config=text,
        feature_gates=dict(options.gates),
        emulation_version=options.version.name,
        is_beside=is_beside,
    )
    return Record(file, setup, RecordSettings(most_bytes=most))


def _add_kubeconfig_and_version(
    connection: ConnectionOptions,
    options: EngineOptions,
    emulation_version: str,
    serving: ServingSettings | None,
) -> tuple[ConnectionOptions, EngineOptions]:
    """Adds the kubeconfig of the configuration, and the version of the API server."""
    from contextlib import nullcontext
    from functools import partial

    from moorage.app.endpoints import serve_early_probes

    from .emulation import await_version

    # Its mistakes are reported at once, not when the API server answers.
    configuration = options.configuration()
    connection = connection.with_default(configuration.client_connection.kubeconfig)
    # A kubelet restarts what does not answer, and the API server may take its time.
    probes = nullcontext if serving is None else partial(serve_early_probes, serving)
    version = await_version(emulation_version, connection, probes)
    return connection, replace(options, version=version)


def _make_identity() -> str:
    """Returns a name that no other replica has."""
    import socket
    import uuid

    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _schedule(connection: ConnectionOptions, options: EngineOptions, settings: RunSettings) -> int:
    """Schedules until stopped and returns the exit code."""
    from moorage.app.main_thread import schedule
    from moorage.app.observations import Observations

    observations = Observations()
    engine = options.engine(observations)
    return schedule(connection.connect, engine, observations, settings)


def _flags(invocation: typer.Context) -> dict[str, object]:
    """Returns the flags of the command line with their values."""
    given = invocation.params.items()
    return {name.replace("_", "-"): "" if value is None else value for name, value in given}


def _seconds(flag: str, text: str) -> float:
    """Reads a duration; raises InputError unless it is positive."""
    from moorage.config.duration import Duration
    from moorage.documents.errors import InputError

    try:
        found = Duration.parse(text).seconds
    except ValueError as error:
        raise InputError(flag, str(error)) from error
    if found <= 0:
        raise InputError(flag, f"must be positive, got {text!r}")
    return found
