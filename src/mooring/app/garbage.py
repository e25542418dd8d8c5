"""When Python looks for garbage, where a cluster is kept in memory."""

from __future__ import annotations

import gc

# So many new objects are made before garbage is looked for. Decisions make objects that are not
# garbage, or go by themselves.
_MADE_BEFORE_LOOKING = 20_000

_BEFORE = gc.get_threshold()


def settle_garbage() -> None:
    """What is known by now stays, and garbage is looked for rarely: among it, that takes long."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_MADE_BEFORE_LOOKING)


def unsettle_garbage() -> None:
    """Garbage is looked for everywhere again, and as often as before."""
    gc.unfreeze()
    gc.set_threshold(*_BEFORE)
