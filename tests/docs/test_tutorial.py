"""The tutorial, typed into a terminal with a cluster beside it.

`python -m tests.docs.test_tutorial` writes what is printed into the page, to be read before it is
committed.
"""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

from tests.docs.pages import DOCS, blocks
from tests.docs.transcripts import needs_kubectl, rewrite, steps, terminal

PAGE = DOCS / "tutorial.md"
ROOT = DOCS.parent
POLICY = ROOT / "examples" / "tutorial" / "new_nodes_only.py"
CLUSTER = "moorage up --nodes examples/embedded/nodes.yaml --kubeconfig kubeconfig"


@needs_kubectl
def test_what_is_shown_is_what_is_printed(tmp_path: Path) -> None:
    with terminal(CLUSTER, tmp_path) as typed:
        for step in steps(PAGE):
            assert typed(step.command) == step.shown, step.command


def test_the_cluster_is_the_one_that_is_told() -> None:
    shell = [block.text for block in blocks(PAGE, "sh")]
    assert any(CLUSTER in text.splitlines() for text in shell)


def test_the_policy_is_the_one_of_the_file() -> None:
    (shown,) = blocks(PAGE, "python")
    classes = [
        each for each in ast.parse(POLICY.read_text()).body if isinstance(each, ast.ClassDef)
    ]
    assert [ast.unparse(each) for each in classes] == [ast.unparse(ast.parse(shown.text))]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, terminal(CLUSTER, Path(made)) as at_work:
        rewrite(PAGE, at_work)
