"""`mooring webhook`: keep the coexist policy at the API server's door."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OnError(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


def webhook(  # noqa: PLR0913 - one for each flag
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How to reach the API server: else $KUBECONFIG, ~/.kube/config, in-cluster.",
        ),
    ] = None,
    context: Annotated[str | None, typer.Option(metavar="NAME", help="A context of it.")] = None,
    secure_port: Annotated[int, typer.Option(min=0, max=65535)] = 8443,
    bind_address: Annotated[str, typer.Option(metavar="ADDRESS")] = "0.0.0.0",
    tls_cert_file: Annotated[str, typer.Option(metavar="FILE")] = "",
    tls_private_key_file: Annotated[str, typer.Option(metavar="FILE")] = "",
    cert_dir: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="Where a certificate that it signed itself is kept."),
    ] = "",
    on_error: Annotated[
        OnError, typer.Option(help="What to answer when it cannot tell.")
    ] = OnError.ALLOW,
    feature_gates: Annotated[
        str, typer.Option(metavar="A=true,B=false", help="Feature gates to switch.")
    ] = "",
    log_format: Annotated[str, typer.Option(metavar="text|json")] = "text",
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
    from mooring.client.credentials import connect
    from mooring.config import FeatureGates

    logs.configure(logs.LogSettings(logs.Format(log_format)))
    certificate = CertificateSettings(tls_cert_file, tls_private_key_file, cert_dir)
    settings = app.WebhookSettings(
        ServingSettings(bind_address, secure_port, certificate),
        app.OnError(on_error.value),
        FeatureGates.from_text(feature_gates).enabled("CoexistPolicy"),
    )

    async def main() -> None:
        connection = await connect(None if kubeconfig is None else str(kubeconfig), context)
        await app.guard_cluster(connection, settings)

    uvloop.run(main())
