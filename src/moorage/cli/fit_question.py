"""The question that `moorage fit` gets about pods, workloads or gangs, and its answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import typer

from moorage.documents.errors import InputError
from moorage.engine import Engine
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.simulate.gang_fit import GangComparison, GangFit, GangQuestion, fit_gangs
from moorage.simulate.loading import Additions, Input
from moorage.simulate.pod_fit import Comparison, Fit, Question, compare, fit as place, fit_waiting
from moorage.simulate.rescheduling import measure_present, reschedule
from moorage.world import DrainError, Scene

from .drain_text import drain_parts, is_forbidden
from .explain_gangs import GANG_GATES, gang_parts
from .explain_text import NodeNames
from .fit_text import comparison_parts, fit_parts, packing_parts
from .fit_workloads import is_single_pod, load_files, place_workloads
from .inputs import ConnectionOptions, EngineOptions, read_cluster_input, read_manifests
from .rendering import count, line, print_data, render, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moorage.engine import Engine
    from moorage.world import Scene


T = TypeVar("T")

# Exit code when a pod finds no node.
_LEFT = 1


@dataclass(frozen=True, slots=True)
class FitInput:
    """The question as the command line puts it."""

    #: The configuration in use now, then those to compare with.
    engines: Sequence[EngineOptions]
    paths: Sequence[str]
    connection: ConnectionOptions
    files: Sequence[str]
    count: int
    #: How many copies make a gang; 0 if they are placed one by one.
    gang: int
    topology_key: str
    drain: Sequence[str]
    shapes: Sequence[str]
    reschedule: bool
    selector: str


def answer_fit(asked: FitInput, output: str, fail_on: Collection[str]) -> None:
    """Answers the question, and exits with 1 if a pod finds no node.

    `fail_on` says what else is a failure: any pod that waits, or what is not understood.
    """
    # Made before anything is read, so that the user first hears what is wrong with them.
    engines = [options.engine(asks_extenders=False) for options in asked.engines]
    _check_flags(asked, output)
    if not asked.paths:
        asked.connection.warn_of_options(asked.engines[-1])
    shapes = [_read_shape(each) for each in asked.shapes]
    kinds = set(chain.from_iterable(engine.handles.kinds for engine in engines))
    cluster = read_cluster_input(asked.paths, asked.connection, kinds)
    scene = Scene.of(cluster.objects)
    if asked.reschedule:
        _reschedule(asked, engines, _imagine(scene, asked.drain, shapes), output)
        return
    other = engines[1] if len(engines) > 1 else asked.engines[0].engine(asks_extenders=False)
    _place(asked, (engines[0], other), cluster, scene, shapes, output, fail_on)


def _check_flags(asked: FitInput, output: str) -> None:
    if asked.selector and not asked.reschedule:
        raise InputError("--selector", "only with --reschedule")
    if asked.reschedule and (asked.files or output in _FOR_CI):
        raise InputError("--reschedule", "places running pods: leave out -f, and junit and github")
    if asked.topology_key and not asked.gang:
        raise InputError("--topology", "only with --gang")
    if asked.gang and (asked.reschedule or not asked.files):
        raise InputError("--gang", "is made of copies of the pod in a file: give it with -f")
    if len(asked.engines) > 2 and not asked.reschedule:
        raise InputError("--config", "may be repeated only with --reschedule")


_FOR_CI = ("junit", "github")


def _place(  # noqa: PLR0913 - the question, the engines and the scene
    asked: FitInput,
    engines: tuple[Engine, Engine],
    cluster: Input,
    scene: Scene,
    shapes: Sequence[tuple[Node, int]],
    output: str,
    fail_on: Collection[str],
) -> None:
    additions = load_files(asked.files, cluster)
    imagined = _imagine(scene, asked.drain, shapes)
    is_copied = asked.count > 1 or asked.gang or output not in _FOR_CI
    if additions is not None and not (is_single_pod(additions) and is_copied):
        if asked.count > 1:
            raise InputError("--count", "only with one pod, of which copies are made")
        if asked.gang:
            raise InputError("--gang", "only with one pod, of which copies are made")
        engine = _enable_groups(asked, additions) or engines[1]
        place_workloads(engine, imagined, additions, output, fail_on)
        return
    if output in _FOR_CI:
        raise InputError(f"--output {output}", "only with workloads (-f)")
    if additions is not None:
        _place_copies(asked, engines, (scene, imagined), additions, output)
    elif asked.drain:
        # The pods to place are those of the drained nodes, whatever else is imagined.
        scene = imagined if not shapes else _imagine(scene, asked.drain, ())
        before = place(engines[0], scene, Question())
        is_compared = imagined is not scene or len(asked.engines) > 1
        after = place(engines[1], imagined, Question()) if is_compared else None
        _write_fit(before, after, output)
    else:
        _fit_waiting(asked, (scene, imagined), output)


def _place_copies(
    asked: FitInput,
    engines: tuple[Engine, Engine],
    scenes: tuple[Scene, Scene],
    additions: Additions,
    output: str,
) -> None:
    """Places copies of the pod in a file, one by one or as gangs."""
    pod, claims = additions.workloads[0].pods[0], additions.workloads[0].claims
    is_compared = scenes[1] is not scenes[0] or len(asked.engines) > 1
    if asked.gang:
        gangs = GangQuestion(pod, asked.gang, asked.count, asked.topology_key)
        place_gangs(engines, scenes, gangs, is_compared, output)
        return
    question = Question(pod, asked.count, additions.objects, claims)
    before = place(engines[0], scenes[0], question)
    after = place(engines[1], scenes[1], question) if is_compared else None
    _write_fit(before, after, output)


def _enable_groups(asked: FitInput, additions: Additions) -> Engine | None:
    """Returns an engine that counts groups, as for `--gang`; None if no workload makes a group."""
    if all(each.group is None for each in additions.workloads):
        return None
    options = asked.engines[-1]
    gates = f"{GANG_GATES},{options.feature_gates}"
    return replace(options, feature_gates=gates).engine(asks_extenders=False)


def _fit_waiting(asked: FitInput, scenes: tuple[Scene, Scene], output: str) -> None:
    """Places the pods that wait, now and after the change if there is one."""
    now, *others = asked.engines
    before, after = fit_waiting(now.maker(asks_extenders=False), scenes[0]), None
    if others or scenes[1] is not scenes[0]:
        then = others[0] if others else now
        after = fit_waiting(then.maker(asks_extenders=False), scenes[1])
    _write_fit(before, after, output)


def _write_fit(before: Fit, after: Fit | None, output: str) -> None:
    result = before if after is None else compare(before, after)
    after = after or before
    if not print_data(result, output):
        if isinstance(result, Comparison):
            print(render(comparison_parts(result)))
        else:
            print(render(fit_parts(result)))
    if after.placed < after.asked or is_forbidden(after.drain):
        raise typer.Exit(_LEFT)


def _reschedule(asked: FitInput, engines: Sequence[Engine], scene: Scene, output: str) -> None:
    """Places all running pods anew, once per configuration, and compares with the present."""
    wanted = _read_selector(asked.selector)

    def selects(pod: Pod) -> bool:
        return wanted.items() <= pod.labels.items()

    options = asked.engines[1:] or asked.engines
    names = [each.config.name if each.config is not None else "default" for each in options]
    packings = [measure_present(asked.engines[0].engine(asks_extenders=False), scene)]
    for name, engine in zip(names, engines[1:] or engines, strict=True):
        packings.append(reschedule(name, engine, scene, selects))
    if not print_data(packings, output):
        print(render(packing_parts(packings)))
    if any(each.left for each in packings):
        raise typer.Exit(_LEFT)


def _read_selector(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if not all(key and sign for key, sign, _ in pairs):
        raise InputError("--selector", f"{text}: write KEY=VALUE[,KEY=VALUE...]")
    return {key: value for key, _, value in pairs}


def _imagine(scene: Scene, drain: Sequence[str], shapes: Sequence[tuple[Node, int]]) -> Scene:
    for shape, number in shapes:
        scene = scene.extend(shape, number)
    try:
        return scene.drain(drain) if drain else scene
    except DrainError as error:
        raise InputError("--drain", f"there is no node {error}") from None


def _read_shape(argument: str) -> tuple[Node, int]:
    file, _, number = argument.rpartition("=")
    if not file or not number.isdecimal() or not int(number):
        raise InputError("--add-nodes", f"{argument}: write FILE=COUNT, with a count of 1 or more")
    return _read_one(file, Node), int(number)


def _read_one(file: str, kind: type[T]) -> T:
    found = [item for item in read_manifests([file]) if isinstance(item, kind)]
    if len(found) != 1:
        raise InputError(file, f"must contain one {kind.__name__}, but contains {len(found)}")
    return found[0]


# `-o json` prints the others too.
_MOST_ROWS = 10


def place_gangs(
    engines: tuple[Engine, Engine],
    scenes: tuple[Scene, Scene],
    question: GangQuestion,
    is_compared: bool,
    output: str,
) -> None:
    """Places gangs and prints the outcome; exits with 1 if one does not fit."""
    after = fit_gangs(engines[0], scenes[0], question)
    result: GangFit | GangComparison = after
    if is_compared:
        before, after = after, fit_gangs(engines[1], scenes[1], question)
        result = GangComparison(before, after)
    if not print_data(result, output):
        print(render(_parts(result)))
    if after.placed < after.asked or is_forbidden(after.drain):
        raise typer.Exit(_LEFT)


def _parts(result: GangFit | GangComparison) -> Iterator[RenderableType]:
    if isinstance(result, GangFit):
        yield from _fit_parts(result)
        return
    rows = [
        (name, str(fit.node_count), str(fit.asked), str(fit.placed), str(fit.asked - fit.placed))
        for name, fit in (("as it is", result.before), ("what if", result.after))
    ]
    yield table(("", "NODES", "GANGS", "PLACED", "LEFT"), rows, numbers_from=1)
    yield ""
    yield from _fit_parts(result.after)


def _fit_parts(fit: GangFit) -> Iterator[RenderableType]:
    gangs = f"gang{'s' * (fit.asked != 1)} of {fit.size}"
    verb = "fits" if fit.asked == 1 else "fit"
    colour = "bold green" if fit.placed == fit.asked else "bold red"
    nodes = count(fit.node_count, "node")
    yield line(f"{fit.placed} of {fit.asked} {gangs} {verb} on {nodes}", colour)
    yield from drain_parts(fit.drain)
    if fit.gangs:
        yield ""
        yield _gangs(fit)
        left = fit.placed - _MOST_ROWS
        if left > 0:
            yield line(f"and {left} more, see -o json")
    if fit.why is not None:
        yield ""
        yield from gang_parts(fit.why)


def _gangs(fit: GangFit) -> RenderableType:
    names = NodeNames(share.node for gang in fit.gangs for share in gang.nodes)
    rows = []
    for number, gang in enumerate(fit.gangs[:_MOST_ROWS], 1):
        where = [f"{names.shorten(each.node)} ({each.count})" for each in gang.nodes]
        row = (str(number), gang.domain, str(len(gang.nodes)), shorten(where))
        rows.append(row if fit.topology_key else (row[0], *row[2:]))
    key = (fit.topology_key.upper(),) if fit.topology_key else ()
    return table(("GANG", *key, "NODES", "ON"), rows)
