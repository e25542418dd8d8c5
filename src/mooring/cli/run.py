"""`mooring run`: schedule a real cluster."""

from __future__ import annotations

import typer

from .options import (
    BindAddressOption,
    CertDirOption,
    ConfigOption,
    ContextOption,
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
from .run_options import (
    AlwaysAllowPathsOption,
    KubeApiBurstOption,
    KubeApiQpsOption,
    LeaderElectOption,
    LeaseDurationOption,
    LeaseNameOption,
    LeaseNamespaceOption,
    RecordMaxSizeOption,
    RecordOption,
    Switch,
    VerbosityOption,
)


def run(  # noqa: PLR0913 - one for each flag
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
    kube_api_qps: KubeApiQpsOption = 0.0,
    kube_api_burst: KubeApiBurstOption = 0,
    leader_elect: LeaderElectOption = None,
    leader_elect_lease_duration: LeaseDurationOption = None,
    leader_elect_renew_deadline: LeaseDurationOption = None,
    leader_elect_retry_period: LeaseDurationOption = None,
    leader_elect_resource_name: LeaseNameOption = None,
    leader_elect_resource_namespace: LeaseNamespaceOption = None,
    secure_port: SecurePortOption = 10259,
    bind_address: BindAddressOption = "0.0.0.0",
    tls_cert_file: TlsCertFileOption = "",
    tls_private_key_file: TlsPrivateKeyFileOption = "",
    cert_dir: CertDirOption = "",
    authorization_always_allow_paths: AlwaysAllowPathsOption = "/healthz,/livez,/readyz",
    record: RecordOption = None,
    record_max_size: RecordMaxSizeOption = "512Mi",
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    verbosity: VerbosityOption = 0,
) -> None:
    """Schedule a real cluster, until stopped.

    Exits with 0 when it was told to stop, 1 when it lost its lead, 2 when it cannot start.
    """
    # Here, so that the other commands start without what a scheduler needs.
    from . import running

    running.configure_logs(log_format, log_level, verbosity)
    deciding = running.Deciding(
        config,
        feature_gates,
        plugins,
        election={
            "leader_elect": leader_elect and leader_elect is Switch.ON,
            "lease_duration": leader_elect_lease_duration,
            "renew_deadline": leader_elect_renew_deadline,
            "retry_period": leader_elect_retry_period,
            "resource_name": leader_elect_resource_name,
            "resource_namespace": leader_elect_resource_namespace,
        },
    )
    certificate = running.CertificateSettings(tls_cert_file, tls_private_key_file, cert_dir)
    settings = running.Settings(
        identity=running.identity(),
        qps=kube_api_qps,
        burst=kube_api_burst,
        serving=running.serving(bind_address, secure_port, certificate),
        authorization=running.authorization(authorization_always_allow_paths),
        record=running.recording(record, record_max_size, deciding),
    )
    connecting = running.Connecting(kubeconfig, context, master)
    raise typer.Exit(running.scheduled(connecting, deciding, settings))
