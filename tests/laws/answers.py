"""What a plugin answers for a pod on some rows, in plain values that can be compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes, Rows
from mooring.config import FeatureGates
from mooring.framework.plugin import Filter, Narrowed, Plugin, PreFilter, PreScore, Score
from mooring.framework.status import PluginError, Rejected
from mooring.objects.pod import Pod
from mooring.plugins import BUILTIN
from mooring.plugins.coexist_policy import CoexistPolicy, CoexistPolicyArgs

FILTERS = [plugin for plugin in BUILTIN if issubclass(plugin, Filter)]
SCORES = [plugin for plugin in BUILTIN if issubclass(plugin, Score)]
EITHER = [plugin for plugin in BUILTIN if issubclass(plugin, Filter | Score)]


#: Args without which a plugin would not serve one of its points.
ARGS: dict[type[Plugin], msgspec.Struct] = {
    CoexistPolicy: CoexistPolicyArgs(prefer_smallest_node=True)
}

SKIPPED = ("skip",)


class NotAsked(NamedTuple):
    """Why there is no answer per row: the plugin skips the pod, or rejects it as a whole."""

    why: tuple[str, ...]


def build(kind: type[Plugin]) -> Any:
    """The plugin as the default profile has it, but with everything it can do switched on."""
    return kind.create(ARGS.get(kind) or (kind.Args and kind.Args()), FeatureGates())


def prepare_filter(plugin: Any, pod: Pod, nodes: Nodes) -> Any:
    if not isinstance(plugin, PreFilter):
        return pod
    try:
        prepared = plugin.pre_filter(pod, nodes)
    except PluginError as error:
        return NotAsked(("error", str(error)))
    if prepared is None:
        return NotAsked(SKIPPED)
    if isinstance(prepared, Rejected):
        return NotAsked((prepared.code, *prepared.reasons))
    return prepared.prepared if isinstance(prepared, Narrowed) else prepared


def prepare_score(plugin: Any, pod: Pod, nodes: Nodes, feasible: NDArray[np.intp]) -> Any:
    if not isinstance(plugin, PreScore):
        return pod
    try:
        prepared = plugin.pre_score(pod, nodes, feasible)
    except PluginError as error:
        return NotAsked(("error", str(error)))
    return NotAsked(SKIPPED) if prepared is None else prepared


def filtered(plugin: Any, prepared: Any, nodes: Nodes, rows: Rows) -> list[tuple[str, ...]]:
    """Per position why the row is rejected; empty where it is not, as when the plugin skips."""
    if isinstance(prepared, NotAsked):
        return [() if prepared.why == SKIPPED else prepared.why] * nodes.count(rows)
    verdict = plugin.filter(prepared, nodes, rows)
    assert verdict.failed.shape == (len(verdict.reasons), nodes.count(rows))
    return [
        (verdict.code(at), *verdict.told(at)) if no else ()
        for at, no in enumerate(verdict.rejected.tolist())
    ]


def scored(plugin: Any, prepared: Any, nodes: Nodes, rows: Rows) -> list[int]:
    """Per position the raw score."""
    if isinstance(prepared, NotAsked):
        return [0] * nodes.count(rows)
    scores = plugin.score(prepared, nodes, rows)
    assert scores.dtype == np.int64
    assert scores.shape == (nodes.count(rows),)
    return list(scores.tolist())


def everything_said(plugin: Any, pod: Pod, nodes: Nodes) -> dict[str, tuple[Any, ...]]:
    """All that a plugin says about a pod, by node name."""
    rows = nodes.rows
    said: list[list[Any]] = [[] for _ in rows]
    if isinstance(plugin, Filter):
        prepared = prepare_filter(plugin, pod, nodes)
        for answers, answer in zip(said, filtered(plugin, prepared, nodes, rows), strict=True):
            answers.append(answer)
    if isinstance(plugin, Score):
        prepared = prepare_score(plugin, pod, nodes, rows)
        for answers, score in zip(said, scored(plugin, prepared, nodes, rows), strict=True):
            answers += (isinstance(prepared, NotAsked), score)
    return dict(zip(nodes.names(rows.tolist()), map(tuple, said), strict=True))
