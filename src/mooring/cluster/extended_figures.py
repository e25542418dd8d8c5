"""What there is of extended resources, to be logged when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .extended_resources import ExtendedResources

#: By resource type and node name, the figures of the resource.
Figures = Mapping[str, Mapping[str, Mapping[str, int]]]


def extended_figures(resources: ExtendedResources) -> Figures:
    """The figures of every resource with its pods counted, by type and node name.

    Resources whose node is not there are among them: nothing is counted in these.
    """
    return {
        table.resource_type: {
            name: dict(table.by_node[name].figures) for name in sorted(table.by_node)
        }
        for table in resources.tables()
    }


def extended_lines(resources: ExtendedResources) -> Iterator[str]:
    """The same in lines for a log, one per type and node."""
    for resource_type, nodes in extended_figures(resources).items():
        for name, figures in nodes.items():
            told = " ".join(f"{figure}={value}" for figure, value in figures.items())
            yield f"{resource_type} node={name} {told}"
