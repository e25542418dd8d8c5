"""Everything that an engine keeps in columns, to see that asking changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from moorage.engine import Engine


def columns(engine: Engine) -> dict[str, Any]:
    """The columns byte by byte, and where the log of changes stands."""
    state = engine.cluster._state
    arrays = {
        name: value
        for name in dir(state.columns)
        if isinstance(value := getattr(state.columns, name), np.ndarray)
    }
    assert arrays, "there are columns to compare"
    return {
        **{name: value.tobytes() for name, value in arrays.items()},
        "generation": engine.cluster.changes.generation,
        "pods": [list(pods) for pods in state.pods],
        "order": engine.cluster.nodes.order.tolist(),
        "queue": sorted(engine.pending_pods),
        "nominations": sorted((name, uid) for name, pods in state.nominations for uid in pods),
    }
