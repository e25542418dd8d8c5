"""`moorage simulate --trace`: what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.builders import node_manifest
from tests.cli.invoking import Moorage
from tests.record.test_replay import MOST_ALLOCATED
from tests.simulate.test_traces import record_story


def test_two_configurations_side_by_side(moorage: Moorage, tmp_path: Path) -> None:
    folder, recording = tmp_path, record_story(tmp_path / "run")
    (folder / "packed.yaml").write_text(MOST_ALLOCATED)
    # On other nodes than those of the recording, on which the large pod fits, too.
    (folder / "nodes.yaml").write_text(
        json.dumps({"apiVersion": "v1", **node_manifest("big", cpu=99)})
    )
    result = moorage(
        *("simulate", str(folder / "nodes.yaml"), "--trace", str(recording)),
        *("--against", str(folder / "packed.yaml")),
    )

    assert result.code == 0, result.err
    rows = [line.split() for line in result.out.splitlines()]
    assert rows[0] == ["default", "packed"]
    assert rows[1] == ["pods", "placed,", "of", "2", "2", "2"]

    told = json.loads(moorage("simulate", "--trace", str(recording), "-o", "json").out)
    assert [each["placed"] for each in told] == [1]


def test_a_trace_needs_nodes(moorage: Moorage, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival,cpu\n1,1\n")
    result = moorage("simulate", "--trace", str(tmp_path / "t.csv"))

    assert result.code == 2
    assert "has no nodes" in result.err
