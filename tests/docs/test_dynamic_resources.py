"""The page on devices by claim, typed into a terminal with a cluster beside it.

`python -m tests.docs.test_dynamic_resources` writes what is printed into the page, to be read
before it is committed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from moorage.config import load_mapping
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY
from tests.docs.pages import DOCS, blocks
from tests.docs.transcripts import ROOT, needs_kubectl, rewrite, steps, terminal

PAGE = DOCS / "dynamic-resources.md"
EXAMPLES = ROOT / "examples" / "dynamic-resources"
CLUSTER = "moorage up --nodes examples/dynamic-resources/nodes.yaml --kubeconfig kubeconfig"


@needs_kubectl
def test_what_is_shown_is_what_is_printed(tmp_path: Path) -> None:
    with terminal(CLUSTER, tmp_path) as typed:
        for step in steps(PAGE):
            assert typed(step.command) == step.shown, step.command


def test_the_cluster_is_the_one_that_is_told() -> None:
    shell = [block.text for block in blocks(PAGE, "sh")]
    assert any(CLUSTER in text.splitlines() for text in shell)


def test_manifests_are_those_of_the_examples() -> None:
    files = [path.read_text() for path in EXAMPLES.glob("*.yaml")]
    for block in blocks(PAGE, "yaml"):
        if "kind: KubeSchedulerConfiguration" in block.text:
            load_mapping(yaml.safe_load(block.text), known=known_plugins(REGISTRY))
            continue
        assert any(block.text.strip("\n") in text for text in files), block.text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, terminal(CLUSTER, Path(made)) as at_work:
        rewrite(PAGE, at_work)
