"""Controls Python's garbage collector where a cluster is kept in memory."""

from __future__ import annotations

import gc

# So many new objects are made before garbage is looked for. Decisions make objects that are not
# garbage, or go by themselves.
_MADE_BEFORE_LOOKING = 20_000

_BEFORE = gc.get_threshold()


def freeze_objects() -> None:
    """Excludes all present objects from garbage collection, and collects rarely.

    To search a whole cluster for garbage takes long.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_MADE_BEFORE_LOOKING)


def unfreeze_objects() -> None:
    """Includes all objects in garbage collection again, as often as before."""
    gc.unfreeze()
    gc.set_threshold(*_BEFORE)
