"""The rows that changed since a generation of the cluster, as classes and failures read them."""

from __future__ import annotations

from moorage.cluster.changes import EVERYWHERE, ChangeLog, RowChanges, unite

# Plugins are asked about more changed rows than this in columns: one by one would take longer.
_ROW_BY_ROW = 16
# More changes than this are read from the log in columns: one by one would take longer.
_CHANGE_BY_CHANGE = 64


def read_changes(
    log: ChangeLog, generation: int
) -> tuple[dict[int, int] | RowChanges, int, int] | None:
    """Returns the rows that changed, the changes of the whole cluster, and all kinds in one number.

    Few rows are returned as a dictionary, because plugins are asked about them one by one. None if
    the log has dropped some of these changes.
    """
    newest = log.newest
    if log.generation - generation == 1 and newest is not None and newest[0] != EVERYWHERE:
        return {newest[0]: newest[1]}, 0, newest[1]
    if log.generation - generation > _CHANGE_BY_CHANGE:
        many = log.gather(generation)
        if many is None:
            return None
        changed = many if len(many.rows) > _ROW_BY_ROW else many.by_row()
        return changed, many.everywhere, many.everywhere | many.unite()
    few = log.since(generation)
    if few is None:
        return None
    everywhere = few.pop(EVERYWHERE, 0)
    union = everywhere | unite(few.values())
    return (RowChanges.of(few) if len(few) > _ROW_BY_ROW else few), everywhere, union
