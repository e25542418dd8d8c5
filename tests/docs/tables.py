"""The tables in the docs that are made from the code. `make docs` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from mooring.cluster import Change
from mooring.framework.plugin import Filter, Plugin, Score
from mooring.plugins import BUILTIN

PAGE = Path(__file__).parents[2] / "docs" / "classes-and-batches.md"

_MARKED = re.compile(r"(<!-- reads -->\n).*(<!-- /reads -->)", re.DOTALL)

#: What happens, and the kinds of change that it is noted as.
OPERATIONS = {
    "a pod comes, goes or changes": Change.PODS | Change.REQUESTED,
    "… with host ports": Change.PORTS,
    "… with volumes": Change.VOLUMES,
    "… with affinity terms": Change.TERMS,
    "a node comes or goes": Change.MEMBERSHIP,
    "a node's allocatable changes": Change.ALLOCATABLE,
    "a node's labels change": Change.LABELS,
    "a node's taints change": Change.TAINTS,
    "a node is cordoned or uncordoned": Change.UNSCHEDULABLE,
    "a node's images change": Change.IMAGES,
    "a node's declared features change": Change.FEATURES,
    "a node's attach limits change": Change.ATTACH_LIMITS,
    "a namespace changes": Change.NAMESPACES,
    "a service or controller changes": Change.SERVICES,
}


def reads_table() -> str:
    """Operations by plugins; a cell tells how far the change reaches in the plugin's answers."""
    plugins = [plugin for plugin in BUILTIN if issubclass(plugin, Filter | Score) and plugin.reads]
    lines = [
        _row("operation", *(_abbreviated(plugin) for plugin in plugins)),
        _row(*["---"] * (len(plugins) + 1)),
    ]
    for operation, kinds in OPERATIONS.items():
        cells = (plugin.scope.value if plugin.reads & kinds else "" for plugin in plugins)
        lines.append(_row(operation, *cells))
    return "\n".join(lines) + "\n"


def _abbreviated(plugin: type[Plugin]) -> str:
    # Spaces, so that a wide table can break its header.
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plugin.name)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def written(page: str) -> str:
    """The page with its tables as they should be."""
    return _MARKED.sub(lambda marked: marked[1] + reads_table() + marked[2], page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
