"""`moorage webhook`: enforce the coexist policy when the API server binds pods."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

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


class ErrorAnswer(StrEnum):
    """What the webhook answers when it cannot decide."""

    ALLOW = "allow"
    DENY = "deny"


def webhook(  # noqa: PLR0913 - one for each flag
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    secure_port: Annotated[
        int,
        typer.Option(metavar="PORT", min=0, max=65535, help="HTTPS port.", rich_help_panel=SERVING),
    ] = 8443,
    bind_address: BindAddressOption = "0.0.0.0",
    tls_cert_file: TlsCertFileOption = "",
    tls_private_key_file: TlsPrivateKeyFileOption = "",
    cert_dir: CertDirOption = "",
    client_ca_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Answer only clients whose certificate one of these authorities has signed.",
            rich_help_panel=SERVING,
        ),
    ] = "",
    on_error: Annotated[
        ErrorAnswer,
        typer.Option(help="What to answer while the pods of the cluster cannot be read."),
    ] = ErrorAnswer.ALLOW,
    raise_requests: Annotated[
        bool,
        typer.Option(
            help="Raise the requests of exclusive pods to the size of the smallest suitable node."
        ),
    ] = False,
    feature_gates: FeatureGatesOption = "",
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Serve an admission webhook that enforces the coexist policy.

    The API server asks it about every binding and every pod that is created on a node. It enforces
    the policy against other schedulers as far as an API server can; docs/coexist-policy.md says how
    far.
    """
    import uvloop

    from moorage.app import coexist_webhook as app, logs
    from moorage.app.https_site import CertificateSettings, ServingSettings
    from moorage.config import FeatureGates

    from .inputs import ConnectionOptions

    logs.configure(logs.LogSettings(logs.Format(log_format.value)))
    certificate = CertificateSettings(
        tls_cert_file, tls_private_key_file, cert_dir, client_ca_file=client_ca_file
    )
    settings = app.WebhookSettings(
        ServingSettings(bind_address, secure_port, certificate, app.LIMITS),
        app.OnError(on_error.value),
        FeatureGates.from_text(feature_gates).enabled("CoexistPolicy"),
        raise_requests,
    )

    options = ConnectionOptions(kubeconfig, context)

    async def main() -> None:
        await app.guard_cluster(await options.connect(), settings)

    uvloop.run(main())
