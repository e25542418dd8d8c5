"""`moorage analyse`: which pods could share answers, and which plugins prevent it for others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    OUTPUT,
    AnswerFormat,
    ConfigOption,
    ContextOption,
    EmulationVersionOption,
    FeatureGatesOption,
    KubeconfigOption,
    PluginsOption,
)
from .rendering import count, plain, print_data

if TYPE_CHECKING:
    from moorage.simulate.likeness import Likeness


def analyse(  # noqa: PLR0913 - one for each flag
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="YAML or JSON files or folders with pods; - is standard input. Without a path, "
            "the cluster is read from the API server.",
            show_default=False,
        ),
    ] = None,
    recording: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Analyse the pods of a recording instead, with its configuration."
        ),
    ] = None,
    config: ConfigOption = None,
    plugins: PluginsOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    feature_gates: FeatureGatesOption = "",
    emulation_version: EmulationVersionOption = "",
    output: Annotated[AnswerFormat, OUTPUT] = AnswerFormat.TABLE,
) -> None:
    """Say how many pods could be decided in batches, and which plugins prevent it for others.

    It only reads the pods and decides nothing. The answer is the same whether classes and batches
    are switched on or off.
    """
    # Here, so that the other commands start without NumPy.
    from moorage.documents.errors import InputError
    from moorage.engine.registry import registry
    from moorage.simulate.likeness import analyse, load_pods

    from .emulation import choose_version
    from .inputs import ConnectionOptions, EngineOptions, load_plugins, read_cluster

    connection = ConnectionOptions(kubeconfig, context)
    if recording:
        from moorage.record.last_state import read_pods

        if paths or feature_gates or emulation_version or connection.is_given:
            raise InputError("--recording", "has its own cluster and gates: give no other")
        known = registry(load_plugins(plugins or ()))
        found = analyse(*read_pods(recording, config, known))
    else:
        version = choose_version(emulation_version, None if paths else connection)
        options = EngineOptions(config, feature_gates, plugins, version=version)
        engine = options.engine(asks_extenders=False)
        objects = read_cluster(paths or (), connection, engine.handles.kinds)
        found = analyse(engine, load_pods(engine, objects))
    if print_data(found, output):
        return
    for each in found:
        for line in _describe(each):
            print(plain(line))


def _describe(found: Likeness) -> list[str]:
    classes = "1 class" if found.classes == 1 else f"{found.classes:,} classes"
    lines = [
        f"{found.profile}: {count(found.pods, 'pod')}, {classes}; "
        f"{found.percent} % share a class with another ({found.alike:,})"
    ]
    for each in found.apart:
        what = ", ".join(each.fields) or "what it reads of the cluster"
        lines.append(
            f"  {each.percent} % ({each.count:,}) would if {each.plugin} did not tell them apart, "
            f"mostly by {what}"
        )
    for missing in found.unsigned:
        lines.append(
            f"  {missing.percent} % ({missing.count:,}) cannot: {missing.plugin} ({missing.reason})"
        )
    return lines
