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
    on_error: Annotated[
        OnError, typer.Option(help="What to answer when it cannot tell.")
    ] = OnError.ALLOW,
    feature_gates: FeatureGatesOption = "",
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Answer the API server whether a pod may go to a node, by the coexist policy.

    A kubelet cannot be extended, so this is the closest: a validating admission webhook for
    bindings, and for pods that are created on a node. It is best effort: see
    docs/coexist-policy.md.
    """
    import uvloop

    from mooring.app import logs
    from mooring.app import webhook as app
    from mooring.app.certificates import CertificateSettings
    from mooring.app.tls_site import ServingSettings
    from mooring.config import FeatureGates

    logs.configure(logs.LogSettings(logs.Format(log_format.value)))
    certificate = CertificateSettings(tls_cert_file, tls_private_key_file, cert_dir)
    settings = app.WebhookSettings(
        ServingSettings(bind_address, secure_port, certificate),
        app.OnError(on_error.value),
        FeatureGates.from_text(feature_gates).enabled("CoexistPolicy"),
    )

    connecting = Connecting(kubeconfig, context)

    async def main() -> None:
        await app.guard_cluster(await connecting.connection(), settings)

    uvloop.run(main())
