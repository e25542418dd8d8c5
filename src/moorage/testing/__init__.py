"""A test kit for plugin authors: builders, a driver of an engine, and the laws of plugins.

`docs/writing-a-plugin.md` shows how to use it. It needs nothing but Moorage itself; pytest and
Hypothesis are up to the caller. Moorage's own tests use it too.
"""

from .builders import cluster, node, node_manifest, pod, pod_manifest
from .driver import Driver, bindings, conditions, drive, evictions, make_engine, nominations, notes
from .laws import (
    check_feasible_rows,
    check_filter_rows,
    check_hints,
    check_inputs_unchanged,
    check_laws,
    check_moved_pod,
    check_normal_scores,
    check_reads,
    check_score_rows,
    check_signatures,
    check_skips,
    check_unnoted,
    collect_answers,
)

__all__ = [
    "Driver",
    "bindings",
    "check_feasible_rows",
    "check_filter_rows",
    "check_hints",
    "check_inputs_unchanged",
    "check_laws",
    "check_moved_pod",
    "check_normal_scores",
    "check_reads",
    "check_score_rows",
    "check_signatures",
    "check_skips",
    "check_unnoted",
    "cluster",
    "collect_answers",
    "conditions",
    "drive",
    "evictions",
    "make_engine",
    "node",
    "node_manifest",
    "nominations",
    "notes",
    "pod",
    "pod_manifest",
]
