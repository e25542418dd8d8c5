"""`mooring fit`: how many pods would fit, where, and what runs out first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from .connecting import Connecting
from .options import (
    ContextOption,
    FeatureGatesOption,
    KubeconfigOption,
    MasterOption,
    Output,
    OutputOption,
    PathsArgument,
    PluginsOption,
)

if TYPE_CHECKING:
    from mooring.engine.fit import Comparison, Fit, Scene
    from mooring.objects.decode import Object
    from mooring.objects.node import Node
    from mooring.objects.pod import Pod

T = TypeVar("T")

# Exit code when a pod finds no node.
_LEFT = 1


def fit(  # noqa: PLR0913 - one for each flag
    paths: PathsArgument = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="A pod to place copies of."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many copies.")] = 1,
    drain: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE[,NODE...]", help="Drain these nodes, and place their pods."),
    ] = None,
    add_nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE=COUNT", help="Add so many nodes like the one in a file."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Another KubeSchedulerConfiguration, to be compared."),
    ] = None,
    base_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The KubeSchedulerConfiguration in use.")
    ] = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginsOption = None,
    output: OutputOption = Output.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
) -> None:
    """Place copies of a pod, or the pods that wait, in a cluster that is only imagined.

    With nodes drained or added, or with another configuration, the outcome is compared with that
    of the cluster as it is. Reads only, and nobody is evicted. Exits with 0 when every pod finds a
    node, 1 when one does not, 2 when the input cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.engine.fit import Question, Scene, compare
    from mooring.engine.fit import fit as fitted

    from .scheduler import Deciding
    from .sources import objects

    base = Deciding(base_config, feature_gates, plugins).engine()
    # Made before anything is read, so that what is wrong with it is told first.
    other = Deciding(config or base_config, feature_gates, plugins).engine()
    kinds = {*base.handles.kinds, *other.handles.kinds}
    question = Question(None if file is None else _template(file), count)
    shapes = [_shape(each) for each in add_nodes or ()]
    given = objects(paths or (), Connecting(kubeconfig, context, master), kinds)
    scene = Scene.of(given)
    imagined = _imagined(scene, drain or (), shapes)
    if file is None and drain:
        # What is to be placed are the pods of the drained nodes, whatever else is imagined.
        scene = imagined if not shapes else _imagined(scene, drain, ())
    after = fitted(base, scene, question)
    if imagined is scene and config is None:
        _write(after, output)
    else:
        compared = compare(other, after, imagined, question)
        _write(compared, output)
        after = compared.after
    if after.placed < after.asked:
        raise typer.Exit(_LEFT)


def _write(outcome: Fit | Comparison, output: Output) -> None:
    if output is Output.JSON:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(outcome), indent=2).decode())
    else:
        from .fitting import shown

        print(shown(outcome))


def _imagined(scene: Scene, drain: Sequence[str], shapes: Sequence[tuple[Node, int]]) -> Scene:
    from mooring.engine.fit import UnknownNode
    from mooring.simulate.problems import InputError

    for shape, count in shapes:
        scene = scene.extended(shape, count)
    names = [name for each in drain for name in each.split(",")]
    try:
        return scene.drained(names) if names else scene
    except UnknownNode as error:
        raise InputError("--drain", f"there is no node {error}") from None


def _template(file: str) -> Pod:
    from mooring.objects.pod import Pod

    from .sources import read

    return _only(read([file]), Pod, file)


def _shape(written: str) -> tuple[Node, int]:
    from mooring.objects.node import Node
    from mooring.simulate.problems import InputError

    from .sources import read

    file, _, number = written.rpartition("=")
    if not file or not number.isdecimal() or not int(number):
        raise InputError("--add-nodes", f"{written}: write FILE=COUNT, with a count of 1 or more")
    return _only(read([file]), Node, file), int(number)


def _only(given: tuple[Object, ...], kind: type[T], file: str) -> T:
    from mooring.simulate.problems import InputError

    found = [item for item in given if isinstance(item, kind)]
    if len(found) != 1:
        raise InputError(file, f"one {kind.__name__} is wanted, there are {len(found)}")
    return found[0]
