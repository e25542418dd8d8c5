"""`mooring explain`: why a pod is pending, why it is where it is, and what would change that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from .connecting import Connecting
from .options import (
    CertificateAuthorityOption,
    ConfigOption,
    ContextOption,
    FeatureGatesOption,
    InsecureOption,
    KubeconfigOption,
    MasterOption,
    Output,
    OutputOption,
    PathsArgument,
    PluginsOption,
    TokenFileOption,
    TokenOption,
    UrlOption,
)

if TYPE_CHECKING:
    from mooring.engine import Engine
    from mooring.engine.explain import Explanation
    from mooring.objects.decode import Object
    from mooring.objects.pod import Pod

    from .scheduler import Deciding

# Exit code when the pod has no place.
_PENDING = 1


def explain(  # noqa: PLR0913 - one for each flag
    pod: Annotated[
        str,
        typer.Argument(metavar="POD", help="NAME, or NAMESPACE/NAME.", show_default=False),
    ],
    paths: PathsArgument = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Of a pod given by name.")
    ] = "default",
    node: Annotated[
        str, typer.Option(metavar="NODE", help="Tell why, or why not, this node.")
    ] = "",
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
    url: UrlOption = "",
    token: TokenOption = "",
    token_file: TokenFileOption = None,
    certificate_authority: CertificateAuthorityOption = None,
    insecure: InsecureOption = False,
) -> None:
    """Tell why a pod is pending, why it goes where it goes, and what would change that.

    Asks manifests, a cluster that is listed once, or a scheduler at work. Reads only. Exits with 0
    when the pod runs or could be placed, 1 when not, 2 when the input cannot be used.
    """
    key = pod if "/" in pod else f"{namespace}/{pod}"
    connecting = Connecting(kubeconfig, context, master)
    if url:
        # Here, as below, so that the other commands start without NumPy.
        from .asking import Asking

        asking = Asking(url, token, token_file, certificate_authority, insecure)
        _refuse(paths or config or feature_gates or plugins or connecting.is_asked_for)
        told = asking.explain(key, node)
    else:
        from .scheduler import Deciding

        deciding = Deciding(config, feature_gates, plugins)
        told = _imagined(key, node, paths or (), connecting, deciding)
    _write(told, output)
    if not told.has_place:
        raise typer.Exit(_PENDING)


def _refuse(anything_else: object) -> None:
    from mooring.simulate.problems import InputError

    if anything_else:
        told = "a scheduler at work has a cluster and a configuration of its own: give no other"
        raise InputError("--url", told)


def _write(told: Explanation, output: Output) -> None:
    if output is Output.JSON:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
    else:
        from .explaining import shown

        print(shown(told))


def _imagined(
    key: str,
    node: str,
    paths: Sequence[str],
    connecting: Connecting,
    deciding: Deciding,
) -> Explanation:
    """Explains a pod in an engine of its own."""
    from mooring.engine.explain import UnknownNode
    from mooring.simulate.problems import InputError

    from .sources import objects

    scheduler = deciding.engine()
    given = objects(paths, connecting, scheduler.handles.kinds)
    try:
        return _explained(scheduler, given, key, node)
    except UnknownNode:
        raise InputError(f"node {node}", "there is no such node") from None


def _explained(scheduler: Engine, given: tuple[Object, ...], key: str, node: str) -> Explanation:
    """Explains a pod in a cluster that it is not part of: so its own weight is nowhere."""
    import msgspec

    from mooring.engine.events import Applied
    from mooring.engine.explain import explain as explained
    from mooring.objects.pod import Pod

    pod = _found(given, key)
    for item in given:
        if not (isinstance(item, Pod) and item.uid == pod.uid and pod.node_name):
            scheduler.handle(Applied(item), 0.0)
    unplaced = msgspec.structs.replace(pod, node_name="")
    told = explained(scheduler, unplaced, node)
    return msgspec.structs.replace(told, running_on=pod.node_name)


def _found(given: tuple[Object, ...], key: str) -> Pod:
    from mooring.objects.pod import Pod
    from mooring.simulate.problems import InputError

    pods = [item for item in given if isinstance(item, Pod)]
    for pod in pods:
        if pod.key == key:
            return pod
    raise InputError(f"pod {key}", f"not found among {len(pods)} pods")
