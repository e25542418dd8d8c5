"""`moorage explain`: why a pod is pending, why it is where it is, and what would change that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    AnswerFormat,
    CertificateAuthorityOption,
    ConfigOption,
    ContextOption,
    EmulationVersionOption,
    FeatureGatesOption,
    FromOption,
    InsecureOption,
    KubeconfigOption,
    MasterOption,
    OutputOption,
    PathsArgument,
    PluginsOption,
    TokenFileOption,
    TokenOption,
    UrlOption,
)
from .rendering import note, print_data, render

if TYPE_CHECKING:
    from .explain_answers import Answer
    from .explain_targets import ExplainTarget
    from .inputs import ConnectionOptions, EngineOptions, RemoteScheduler

# Exit code when the pod fits no node.
_PENDING = 1


TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="POD",
        help="What to explain: a pod as NAME or NAMESPACE/NAME, or KIND/NAME for a workload, "
        "a gang or a node (deploy/web, podgroup/train, node/n1). "
        "Without it, all pods that wait.",
        show_default=False,
    ),
]
NamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace", "-n", metavar="NAME", help="Namespace of the object given by NAME."
    ),
]
NodeOption = Annotated[
    str, typer.Option(metavar="NODE", help="Say why this node accepts or rejects the pod.")
]


def explain(  # noqa: PLR0913 - one for each flag
    target: TargetArgument = "",
    paths: PathsArgument = None,
    from_paths: FromOption = None,
    namespace: NamespaceOption = "default",
    node: NodeOption = "",
    output: OutputOption = AnswerFormat.TABLE,
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    emulation_version: EmulationVersionOption = "",
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
    """Say why a pod is pending, why it goes where it goes, and what would change that.

    Reads the cluster from manifests or from the API server, or asks a running scheduler (--url).
    Changes nothing.

    Exit code: 0 if the pod runs or fits a node, 1 if it does not, 2 if the input cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from moorage.documents.errors import InputError

    from .emulation import choose_version
    from .explain_targets import parse_target
    from .inputs import ConnectionOptions, EngineOptions, RemoteScheduler

    if target and not paths and not from_paths and Path(target).exists():
        # Files are all that is given, so that all pods are meant.
        target, paths = "", [target]
    paths = [*(paths or ()), *(from_paths or ())]
    wanted = parse_target(target, namespace)
    connection = ConnectionOptions(kubeconfig, context, master)
    if url:
        others = (paths, config, feature_gates, emulation_version, plugins, connection.is_given)
        if any(others):
            text = "a running scheduler has its own cluster and configuration: give no other"
            raise InputError("--url", text)
        scheduler = RemoteScheduler(url, token, token_file, certificate_authority, insecure)
        found = _ask(scheduler, wanted, node)
    else:
        given = EngineOptions(config, feature_gates, plugins)
        known = None if paths or given.flags or emulation_version else connection.find_scheduler()
        if known is not None and wanted.kind in ("Pod", "PodGroup") and wanted.name:
            # It knows its configuration, its plugins and its queue.
            note(f"the answer of the scheduler at {known.url}")
            found = _ask(RemoteScheduler(known.url, known.token), wanted, node)
        else:
            version = choose_version(emulation_version, None if paths else connection)
            found = _decide(replace(given, version=version), paths, connection, wanted, node)
    _print(found, output)


def _print(found: Answer, output: AnswerFormat) -> None:
    """Prints an answer, and exits with 1 if the pod fits no node."""
    for text in found.notes:
        note(text)
    if not print_data(found.value, output):
        print(render(found.parts()))
    if not found.has_place:
        raise typer.Exit(_PENDING)


def _decide(
    options: EngineOptions,
    paths: list[str],
    connection: ConnectionOptions,
    wanted: ExplainTarget,
    node: str,
) -> Answer:
    """Reads the cluster, and answers with an engine of its own."""
    from .explain_answers import answer
    from .explain_gangs import GANG_GATES
    from .inputs import read_cluster

    if wanted.kind == "PodGroup":
        options = replace(options, feature_gates=f"{GANG_GATES},{options.feature_gates}")
    if not paths:
        connection.warn_of_options(options)
    make_engine = options.maker(asks_extenders=False)
    objects = read_cluster(paths, connection, make_engine().handles.kinds)
    return answer(make_engine, objects, wanted, node)


def _ask(scheduler: RemoteScheduler, wanted: ExplainTarget, node: str) -> Answer:
    """Asks a running scheduler about a pod or a gang.

    Raises InputError if the target is neither.
    """
    from moorage.documents.errors import InputError

    from .explain_answers import PodAnswer
    from .explain_gangs import GangAnswer

    if wanted.kind == "PodGroup" and wanted.name and not node:
        return GangAnswer(scheduler.explain_gang(wanted.key))
    if wanted.kind != "Pod" or not wanted.name:
        text = "a running scheduler is asked about one pod, or one gang as podgroup/NAME"
        raise InputError("--url", text)
    return PodAnswer(scheduler.explain(wanted.key, node))
