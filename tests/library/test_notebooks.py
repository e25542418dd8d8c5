"""What a notebook sees of a cluster: names to complete, a short text, a table."""

from __future__ import annotations

import re

import pytest

import moorage
from moorage.library.tables import Table
from tests.builders import node_manifest, pod_manifest

_METHODS = {
    "add",
    "add_nodes",
    "claim_templates",
    "compare",
    "config",
    "configure",
    "drain",
    "emulation_version",
    "explain",
    "explain_all",
    "feature_gates",
    "fit",
    "make_engine",
    "node_table",
    "nodes",
    "notes",
    "objects",
    "place",
    "plugins",
    "pod_table",
    "pods",
    "reschedule",
    "run_trace",
    "score_table",
    "simulate",
}


def test_completion_offers_public_names_only() -> None:
    cluster = moorage.read_cluster("examples/demo")

    assert dir(moorage) == sorted(moorage.__all__)
    assert {name for name in dir(cluster) if not name.startswith("_")} == _METHODS


def test_a_cluster_is_a_line_of_text_and_a_short_table() -> None:
    cluster = moorage.read_cluster("examples/demo")
    html = cluster._repr_html_()

    assert repr(cluster) == "ClusterSnapshot(6 nodes, 21 pods, 1 of them on nodes)"
    assert html.startswith("<p><b>6 nodes (1 cordoned), 21 pods, 20 Pending, 1 Running</b>")
    assert "<td>cpu</td><td>32</td><td>1</td><td>3%</td>" in html
    assert len(html) < 3000


def test_what_an_author_of_objects_writes_is_no_html() -> None:
    node = node_manifest("n")
    node["status"]["allocatable"]["example.com/<b>"] = "1"
    cluster = moorage.ClusterSnapshot(()).add(
        node,
        pod_manifest("p", labels={"<script>": "<img>"}, status={"phase": "<i>"}),
    )
    shown = [cluster._repr_html_(), cluster.pod_table()._repr_html_()]

    for each in shown:
        assert set(re.findall(r"<[^/>]+>", each)) <= {
            "<p>", "<b>", "<table>", "<thead>", "<tbody>", "<tr>", "<th>", "<td>"
        }  # fmt: skip


@pytest.mark.parametrize(
    ("count", "rows", "end"), [(20, 20, "</table>"), (23, 20, "<p>3 more</p>")]
)
def test_long_tables_are_cut_in_a_notebook(count: int, rows: int, end: str) -> None:
    html = Table({"number": number} for number in range(count))._repr_html_()

    assert html.count("<td>") == rows
    assert html.endswith(end)
    assert Table()._repr_html_() == "<p>no rows</p>"
