"""`mooring fit`: how many pods would fit, where, and what runs out first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from .options import (
    ContextOption,
    FeatureGatesOption,
    KubeconfigOption,
    MasterOption,
    PathsArgument,
    PluginsOption,
)
from .rendering import line, print_json, render, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mooring.engine.explain import Explanation
    from mooring.objects.node import Node
    from mooring.simulate.fit import Comparison, Fit, Move
    from mooring.world import Scene

T = TypeVar("T")

# Exit code when a pod finds no node.
_LEFT = 1

# The nodes that take most pods come first; `-o json` prints the others too.
_MOST_ROWS = 10


class FitFormat(StrEnum):
    """The formats in which the answer is printed; the last two are for workloads in CI."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"

    @property
    def is_for_ci(self) -> bool:
        return self in (FitFormat.JUNIT, FitFormat.GITHUB)


class FailOn(StrEnum):
    """Which pods without a node make the command fail."""

    NEW = "new"
    ANY = "any"


FileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="Place copies of the pod in this file, or the workloads in it; - is standard input. "
        "May be repeated.",
    ),
]
FromOption = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="PATH", help="The same as PATH. May be repeated."),
]
FailOnOption = Annotated[
    FailOn,
    typer.Option(help="Exit with 1 if a new pod finds no node, or any, with those that waited."),
]
FormatOption = Annotated[
    FitFormat,
    typer.Option("--output", "-o", help="Output format; junit and github are for workloads."),
]
CountOption = Annotated[int, typer.Option(min=1, help="Number of copies to place.")]
DrainOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NODE[,NODE...]", help="Imagine these nodes drained, and place their pods."
    ),
]
AddNodesOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE=COUNT", help="Imagine COUNT more nodes like the one in this file."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Compare with what this KubeSchedulerConfiguration would decide.",
    ),
]
BaseConfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The KubeSchedulerConfiguration that is in use now."),
]


def fit(  # noqa: PLR0913 - one for each flag
    paths: PathsArgument = None,
    from_paths: FromOption = None,
    file: FileOption = None,
    count: CountOption = 1,
    fail_on: FailOnOption = FailOn.NEW,
    drain: DrainOption = None,
    add_nodes: AddNodesOption = None,
    config: ConfigOption = None,
    base_config: BaseConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginsOption = None,
    output: FormatOption = FitFormat.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
) -> None:
    """Show how many copies of a pod would fit, which workloads do not, or where pending pods go.

    With nodes drained or added, or with another configuration, the result is compared with the
    cluster as it is. Present pods of a workload of the same name make way as in a rollout. Changes
    nothing, and evicts no pod.

    Exit code: 0 if every pod finds a node, 1 if one does not, 2 if the input cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.simulate.fit import Question, compare
    from mooring.simulate.fit import fit as place
    from mooring.world import Scene

    from .fit_workloads import is_single_pod, load_files, place_workloads
    from .inputs import ConnectionOptions, EngineOptions, read_cluster_input

    # Made before anything is read, so that the user first hears what is wrong with them.
    base, other = (
        EngineOptions(each, feature_gates, plugins).engine(asks_extenders=False)
        for each in (base_config, config or base_config)
    )
    kinds = {*base.handles.kinds, *other.handles.kinds}
    shapes = [_read_shape(each) for each in add_nodes or ()]
    connection = ConnectionOptions(kubeconfig, context, master)
    cluster = read_cluster_input([*(paths or ()), *(from_paths or ())], connection, kinds)
    additions = load_files(file or (), cluster)
    scene = Scene.of(cluster.objects)
    imagined = _imagine(scene, drain or (), shapes)
    if additions is not None and not is_single_pod(additions):
        _refuse(count > 1, "--count", "only with one pod, of which copies are made")
        place_workloads(other, imagined, additions, output, fail_on)
        return
    template = additions.workloads[0].pods[0] if additions is not None else None
    _refuse(output.is_for_ci, f"--output {output.value}", "only with workloads (-f)")
    if template is None and drain:
        # The pods to place are those of the drained nodes, whatever else is imagined.
        scene = imagined if not shapes else _imagine(scene, drain, ())
    question = Question(template, count)
    after = place(base, scene, question)
    if imagined is not scene or config is not None:
        comparison = compare(other, after, imagined, question)
        _write(comparison, output)
        after = comparison.after
    else:
        _write(after, output)
    _exit(after)


def _exit(fit: Fit) -> None:
    if fit.placed < fit.asked:
        raise typer.Exit(_LEFT)


def _imagine(scene: Scene, drain: Sequence[str], shapes: Sequence[tuple[Node, int]]) -> Scene:
    from mooring.documents.errors import InputError
    from mooring.world import DrainError

    for shape, count in shapes:
        scene = scene.extend(shape, count)
    names = [name for each in drain for name in each.split(",")]
    try:
        return scene.drain(names) if names else scene
    except DrainError as error:
        raise InputError("--drain", f"there is no node {error}") from None


def _refuse(given: bool, flag: str, text: str) -> None:
    from mooring.documents.errors import InputError

    if given:
        raise InputError(flag, text)


def _read_shape(argument: str) -> tuple[Node, int]:
    from mooring.documents.errors import InputError
    from mooring.objects.node import Node

    file, _, number = argument.rpartition("=")
    if not file or not number.isdecimal() or not int(number):
        raise InputError("--add-nodes", f"{argument}: write FILE=COUNT, with a count of 1 or more")
    return _read_one(file, Node), int(number)


def _read_one(file: str, kind: type[T]) -> T:
    from mooring.documents.errors import InputError

    from .inputs import read_manifests

    found = [item for item in read_manifests([file]) if isinstance(item, kind)]
    if len(found) != 1:
        raise InputError(file, f"must contain one {kind.__name__}, but contains {len(found)}")
    return found[0]


def _write(result: Fit | Comparison, output: FitFormat) -> None:
    from mooring.simulate.fit import Comparison

    if output is FitFormat.JSON:
        print_json(result)
    elif isinstance(result, Comparison):
        print(render(_comparison(result)))
    else:
        print(render(_fit(result)))


def _comparison(comparison: Comparison) -> Iterator[RenderableType]:
    before, after = comparison.before, comparison.after
    rows = [
        (name, str(fit.node_count), str(fit.asked), str(fit.placed), str(fit.asked - fit.placed))
        for name, fit in (("as it is", before), ("what if", after))
    ]
    yield table(("", "NODES", "PODS", "PLACED", "LEFT"), rows, numbers_from=1)
    if comparison.changed:
        yield ""
        yield from _first_rows(("POD", "AS IT IS", "WHAT IF"), _moves(comparison.changed))
    yield ""
    yield from _fit(after)


def _fit(fit: Fit) -> Iterator[RenderableType]:
    yield line(
        f"{fit.placed} of {fit.asked} pods fit, on {len(fit.nodes)} of {fit.node_count} nodes"
    )
    moves = _moves(fit.moves)
    if moves:
        yield ""
        yield from _first_rows(("POD", "FROM", "TO"), moves)
    if fit.nodes and fit.asked > len(moves):
        yield ""
        nodes = [(each.node, str(each.count)) for each in fit.nodes]
        yield from _first_rows(("NODE", "PODS"), nodes, numbers_from=1)
    yield from _kinds(fit)
    if fit.runs_out:
        yield ""
        out = [
            (", ".join(each.reasons), str(each.count), shorten(each.nodes)) for each in fit.runs_out
        ]
        yield table(("RUNS OUT", "NODES", "SUCH AS"), out)
    yield from _left(fit)


def _moves(moves: Iterable[Move]) -> list[tuple[str, str, str]]:
    return [(each.pod, each.before or "-", each.after or "-") for each in moves]


def _kinds(fit: Fit) -> Iterator[RenderableType]:
    """Shows the nodes by kind, if there are too many to list."""
    if len(fit.nodes) > _MOST_ROWS:
        rows = [
            (each.kind, str(each.node_count), str(each.used), str(each.count)) for each in fit.kinds
        ]
        yield ""
        yield from _first_rows(("KIND OF NODE", "NODES", "USED", "PODS"), rows, numbers_from=1)


def _left(fit: Fit) -> Iterator[RenderableType]:
    for each in fit.left:
        yield ""
        yield line(f"{each.count} pod{'s' * (each.count > 1)} left: {each.message}")
        yield line(f"    {shorten(each.pods)}")
        if fit.why is not None and fit.why.pod in each.pods:
            yield from _suggestion(fit.why)


def _suggestion(why: Explanation) -> Iterator[RenderableType]:
    # Suggestions that need an eviction are left out, because `fit` evicts no pod.
    for suggestion in [each for each in why.suggestions if each.effect == "fits"][:1]:
        nodes = "1 node" if suggestion.count == 1 else f"{suggestion.count} nodes"
        yield line(f"    {why.pod} would fit {nodes} if {suggestion.remedy}")


def _first_rows(
    headers: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None
) -> Iterator[RenderableType]:
    yield table(headers, rows[:_MOST_ROWS], numbers_from)
    if len(rows) > _MOST_ROWS:
        yield line(f"and {len(rows) - _MOST_ROWS} more, see -o json")
