"""`mooring webhook`: keep the coexist policy at the API server's door."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from .connecting import Connecting
from .options import (
    SERVING,
    BindAddressOption,
    CertDirOption,
    ContextOption,
    FeatureGatesOption,
    KubeconfigOption,
    LogFormat,
    LogFormatOption,
    TlsCertFileOption,
    TlsPrivateKeyFileOption,
)


class OnError(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


def webhook(  # noqa: PLR0913 - one for each flag
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    secure_port: Annotated[int, typer.Option(min=0, max=65535, rich_help_panel=SERVING)] = 8443,
    bind_address: BindAddressOption = "0.0.0.0",
    tls_cert_file: TlsCertFileOption = "",
    tls_private_key_file: TlsPrivateKeyFileOption = "",
    cert_dir: CertDirOption = "",
    client_ca_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Answer reviews only to clients that show a certificate signed by one of these.",
            rich_help_panel=SERVING,
        ),
    ] = "",
    on_error: Annotated[
        OnError,
        typer.Option(help="What to answer while the pods of the cluster cannot be read."),
    ] = OnError.ALLOW,
    feature_gates: FeatureGatesOption = "",
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Answer the API server whether a pod may go to a node, by the coexist policy.

    This is a validating admission webhook for bindings, and for pods that are created on a node. It
    does what a kubelet would do that knew the policy. It is best effort: see
    docs/coexist-policy.md.
    """
    import uvloop

    from mooring.app import logs
    from mooring.app import webhook as app
    from mooring.app.certificates import CertificateSettings
    from mooring.app.tls_site import ServingSettings
    from mooring.config import FeatureGates

    logs.configure(logs.LogSettings(logs.Format(log_format.value)))
    certificate = CertificateSettings(
        tls_cert_file, tls_private_key_file, cert_dir, client_ca_file=client_ca_file
    )
    settings = app.WebhookSettings(
        ServingSettings(bind_address, secure_port, certificate, app.LIMITS),
        app.OnError(on_error.value),
        FeatureGates.from_text(feature_gates).enabled("CoexistPolicy"),
    )

    connecting = Connecting(kubeconfig, context)

    async def main() -> None:
        await app.guard_cluster(await connecting.connection(), settings)

    uvloop.run(main())
