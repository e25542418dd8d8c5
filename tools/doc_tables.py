"""The tables in the docs that are made from code and from results. `make docs` writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from moorage.app.metric_table import ABSENT, METRICS
from moorage.cluster import Change
from moorage.engine.registry import registry
from moorage.framework.coexist_ledgers import EXCLUSIVE_PODS, HOLDERS, ORDINARY_PODS
from moorage.framework.plugin import Filter, Plugin, Score
from moorage.framework.series import as_go
from tools.doc_figures import comparison_table, row, speed_table, suites_table

ROOT = Path(__file__).parents[1]

#: What happens, and the kinds of change that it is noted as.
OPERATIONS = {
    "a pod comes, goes or changes": Change.PODS | Change.REQUESTED,
    "… with host ports": Change.PORTS,
    "… with volumes": Change.VOLUMES,
    "… with affinity terms": Change.TERMS,
    "… that is exclusive": EXCLUSIVE_PODS.change | HOLDERS.change,
    "… that is neither a daemonset's nor static": ORDINARY_PODS.change,
    "a pod is nominated to a node, or no longer": Change.NOMINATED,
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
    "a disruption budget changes": Change.BUDGETS,
    "a claim, volume, storage class or driver changes": Change.STORAGE,
    "the annotations of a node change": Change.ANNOTATIONS,
    "the conditions of a node change": Change.CONDITIONS,
    "the annotations of a running pod change": Change.POD_ANNOTATIONS,
    "the status of a running pod changes": Change.POD_STATUS,
    "devices are published or withdrawn": Change.SLICES,
    "a claim gets or gives back devices": Change.CLAIMS,
    "a device class changes": Change.CLASSES,
    "an extended resource changes": Change.EXTENDED,
}


def reads_table() -> str:
    """Operations by plugins; a cell tells how far the change reaches in the plugin's answers."""
    known = registry().values()
    plugins = [plugin for plugin in known if issubclass(plugin, Filter | Score) and plugin.reads]
    lines = [
        row("operation", *(_break_name(plugin) for plugin in plugins)),
        row(*["---"] * (len(plugins) + 1)),
    ]
    for operation, kinds in OPERATIONS.items():
        cells = (plugin.scope.value if plugin.reads & kinds else "" for plugin in plugins)
        lines.append(row(operation, *cells))
    return "\n".join(lines) + "\n"


def _break_name(plugin: type[Plugin]) -> str:
    # Spaces, so that a wide table can break its header.
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plugin.name)


def metrics_table() -> str:
    """Every metric that is exposed."""
    lines = [row("metric", "type", "labels", "buckets", "level"), row(*["---"] * 5)]
    for metric in METRICS:
        bounds = metric.buckets
        buckets = f"{len(bounds)}: {as_go(bounds[0])} to {as_go(bounds[-1])}" if bounds else ""
        labels = ", ".join(metric.labels)
        lines.append(row(f"`{metric.name}`", metric.kind, labels, buckets, metric.level))
    return "\n".join(lines) + "\n"


def absent_table() -> str:
    """What kube-scheduler exposes and we do not."""
    lines = [row("metric", "why not"), row("---", "---")]
    lines += (row(f"`{name}`", why) for name, why in ABSENT.items())
    return "\n".join(lines) + "\n"


#: By page and mark, what the table there is made by.
TABLES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "docs/benchmarks.md": {
        "speed": speed_table,
        "kube-scheduler": comparison_table,
        "suites": suites_table,
    },
    "docs/classes-and-batches.md": {"reads": reads_table},
    "docs/metrics.md": {"metrics": metrics_table, "absent": absent_table},
}


def fill_tables(name: str, page: str) -> str:
    """Fills the tables of a page."""
    for mark, table in TABLES[name].items():
        marked = re.compile(rf"(<!-- {mark} -->\n).*(<!-- /{mark} -->)", re.DOTALL)
        made = table()
        page, count = marked.subn(lambda found, made=made: found[1] + made + found[2], page)  # type: ignore[misc]
        assert count == 1, f"{name} has no place for the table of {mark}"
    return page


if __name__ == "__main__":
    for name in TABLES:
        path = ROOT / name
        path.write_text(fill_tables(name, path.read_text()))
