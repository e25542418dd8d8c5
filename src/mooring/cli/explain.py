"""`mooring explain`: why a pod is pending, why it is where it is, and what would change that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    AnswerFormat,
    CertificateAuthorityOption,
    ConfigOption,
    ContextOption,
    FeatureGatesOption,
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
from .rendering import line, print_json, render, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mooring.engine import Engine
    from mooring.engine.explain import (
        Explanation,
        NodeAnswer,
        QueueView,
        Rejection,
        ScoredNode,
        Suggestion,
    )
    from mooring.objects.kinds import Object
    from mooring.objects.pod import Pod

# Exit code when the pod fits no node.
_PENDING = 1

# The suggestions that help most come first; `-o json` prints the others too.
_MOST_SUGGESTIONS = 8


def explain(  # noqa: PLR0913 - one for each flag
    pod: Annotated[
        str,
        typer.Argument(metavar="POD", help="The pod: NAME, or NAMESPACE/NAME.", show_default=False),
    ],
    paths: PathsArgument = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NAME", help="Namespace of a pod that is given by NAME."
        ),
    ] = "default",
    node: Annotated[
        str,
        typer.Option(metavar="NODE", help="Say why this node takes the pod, or why it does not."),
    ] = "",
    output: OutputOption = AnswerFormat.TABLE,
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
    """Say why a pod is pending, why it goes where it goes, and what would change that.

    Reads the cluster from manifests or from the API server, or asks a running scheduler (--url).
    Changes nothing. Exit code: 0 if the pod runs or fits a node, 1 if it does not, 2 if the input
    cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.documents.errors import InputError

    from .inputs import ConnectionOptions, EngineOptions, RemoteScheduler, read_cluster

    key = pod if "/" in pod else f"{namespace}/{pod}"
    connection = ConnectionOptions(kubeconfig, context, master)
    if url:
        scheduler = RemoteScheduler(url, token, token_file, certificate_authority, insecure)
        if paths or config or feature_gates or plugins or connection.is_given:
            text = "a running scheduler has its own cluster and configuration: give no other"
            raise InputError("--url", text)
        explanation = scheduler.explain(key, node)
    else:
        engine = EngineOptions(config, feature_gates, plugins).engine()
        objects = read_cluster(paths or (), connection, engine.handles.kinds)
        explanation = _explain(engine, objects, key, node)
    if output is AnswerFormat.JSON:
        print_json(explanation)
    else:
        print(render(_parts(explanation)))
    if not explanation.has_place:
        raise typer.Exit(_PENDING)


def _explain(engine: Engine, objects: tuple[Object, ...], key: str, node: str) -> Explanation:
    """Explains a pod in the cluster without that pod, so that its own requests do not count."""
    import msgspec

    from mooring.documents.errors import InputError
    from mooring.engine.events import Applied
    from mooring.engine.explain import NoSuchNode
    from mooring.engine.explain import explain as explain_pod
    from mooring.objects.pod import Pod

    pod = _find(objects, key)
    for item in objects:
        if not (isinstance(item, Pod) and item.uid == pod.uid and pod.node_name):
            engine.handle(Applied(item), 0.0)
    unplaced = msgspec.structs.replace(pod, node_name="")
    try:
        explanation = explain_pod(engine, unplaced, node)
    except NoSuchNode:
        raise InputError(f"node {node}", "there is no such node") from None
    return msgspec.structs.replace(explanation, running_on=pod.node_name)


def _find(objects: tuple[Object, ...], key: str) -> Pod:
    from mooring.documents.errors import InputError
    from mooring.objects.pod import Pod

    pods = [item for item in objects if isinstance(item, Pod)]
    for pod in pods:
        if pod.key == key:
            return pod
    raise InputError(f"pod {key}", f"not found among {len(pods)} pods")


def _parts(explanation: Explanation) -> Iterator[RenderableType]:
    yield line(_headline(explanation))
    if explanation.queue is not None:
        yield from _queue(explanation.queue, explanation.message)
    if explanation.node is not None:
        yield from _node(explanation.node)
    if explanation.message and explanation.state != "fits":
        yield line(explanation.message)
    if explanation.preemption is not None:
        victims = shorten([each.pod for each in explanation.preemption.victims])
        yield line(f"it would fit node {explanation.preemption.node} once evicted: {victims}")
    if explanation.scores:
        yield ""
        yield _scores(explanation.scores)
    left_out = [explanation.left_out] if explanation.left_out else []
    yield from _rejections([*explanation.rejections, *left_out])
    yield from _suggestions(explanation.suggestions, explanation.state)


def _headline(explanation: Explanation) -> str:
    pod, runs_on, chosen = explanation.pod, explanation.running_on, explanation.chosen
    nodes = f"{explanation.feasible_count} of {explanation.node_count} nodes take it"
    there = f" runs on {runs_on};" if runs_on else ""
    match explanation.state:
        case "fits" if runs_on == chosen:
            return f"pod {pod} runs on {runs_on}, and would again: {nodes}"
        case "fits":
            return f"pod {pod}{there} would go to {chosen}: {nodes}"
        case "pending" | "preempting":
            return f"pod {pod}{there} fits no node of {explanation.node_count}"
        case state:
            return f"pod {pod}{there} is not decided about: {state}"


def _queue(queue: QueueView, message: str) -> Iterator[RenderableType]:
    """Shows what a running scheduler is doing with the pod."""
    attempts = f"{queue.attempts} attempt{'s' * (queue.attempts != 1)}"
    if queue.assumed_on:
        yield line(f"it is on its way to {queue.assumed_on}, after {attempts}")
        for wait in queue.permits:
            yield line(f"    {wait.plugin} has {wait.seconds:.1f} s to permit it")
        return
    until = f", for another {queue.backoff_seconds:.1f} s" if queue.backoff_seconds else ""
    yield line(f"in the queue: {queue.place}{until}, after {attempts}")
    if queue.nominated_node:
        yield line(f"    others are evicted for it on {queue.nominated_node}")
    if queue.message not in ("", message):
        yield line(f"    the last attempt: {queue.message}")


def _node(answer: NodeAnswer) -> Iterator[RenderableType]:
    if answer.feasible and answer.score is not None:
        better = f"{answer.better} score better" if answer.better else "none scores better"
        yield line(f"node {answer.node} takes it, with {answer.score.total} points: {better}")
        return
    yield line(f"node {answer.node} does not take it:")
    for each in answer.refusals:
        yield line(f"    {each.plugin}: {', '.join(each.reasons)}")


def _scores(scores: Sequence[ScoredNode]) -> RenderableType:
    plugins = list(dict.fromkeys(name for each in scores for name in each.by_plugin))
    # A plugin that gives every node 0 says nothing.
    plugins = [name for name in plugins if any(each.by_plugin[name] for each in scores)]
    rows = [
        (each.node, str(each.total), *(str(each.by_plugin[name]) for name in plugins))
        for each in scores
    ]
    return table(("BEST NODES", "TOTAL", *plugins), rows, numbers_from=1)


def _rejections(rejections: Sequence[Rejection]) -> Iterator[RenderableType]:
    if not rejections:
        return
    yield ""
    rows = [
        (each.plugin, str(each.count), _reason(each, rejections), shorten(each.nodes))
        for each in rejections
    ]
    yield table(("REJECTED BY", "NODES", "BECAUSE", "SUCH AS"), rows)


def _reason(rejection: Rejection, rejections: Sequence[Rejection]) -> str:
    """Joins the reasons; tells apart two rejections that differ only in whether eviction helps."""
    from mooring.framework.status import Code

    text = ", ".join(rejection.reasons)
    mine = rejection.plugin, rejection.reasons
    same = [each for each in rejections if (each.plugin, each.reasons) == mine]
    hopeless = rejection.code == Code.UNRESOLVABLE and len(same) > 1
    return f"{text}, even without other pods" if hopeless else text


def _suggestions(suggestions: Sequence[Suggestion], state: str) -> Iterator[RenderableType]:
    if not suggestions:
        return
    yield ""
    first = suggestions[:_MOST_SUGGESTIONS]
    rows = [(_effect(each), each.remedy, each.problem, *_blockers(each, first)) for each in first]
    fits = "WOULD ALSO FIT" if state == "fits" else "WOULD FIT"
    yield table((fits, "IF", "BECAUSE", "BLOCKED BY")[: len(rows[0])], rows)
    left = len(suggestions) - len(rows)
    if left:
        yield line(f"and {left} more, see -o json")


def _blockers(suggestion: Suggestion, suggestions: Sequence[Suggestion]) -> tuple[str, ...]:
    """Returns the column of pods in the way, if any suggestion has some."""
    if not any(each.blockers for each in suggestions):
        return ()
    return (shorten([pod.pod for pod in suggestion.blockers]),)


def _effect(suggestion: Suggestion) -> str:
    if suggestion.effect == "none":
        return "-"
    nodes = suggestion.nodes[0] if suggestion.count == 1 else f"{suggestion.count} nodes"
    return f"{nodes}, evicting" if suggestion.effect == "evicts" else nodes
