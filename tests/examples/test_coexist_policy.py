"""The examples and the page about CoexistPolicy do what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.config import Configuration, FeatureGates, default, load
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.objects.coexist import is_exclusive
from moorage.objects.daemons import is_ordinary
from moorage.objects.pod import Pod
from moorage.simulate.loading import load as manifests
from moorage.simulate.simulation import simulate
from moorage.simulate.transcript import Transcript
from tests import builders
from tests.registered import REGISTRY

ROOT = Path(__file__).parents[2]
EXAMPLES, PAGE = ROOT / "examples" / "coexist-policy", ROOT / "docs" / "coexist-policy.md"
KNOWN = known_plugins(REGISTRY)
ON, OFF = default(KNOWN), default(KNOWN, FeatureGates(CoexistPolicy=False))
BLOCKS = [block.split("```")[0] for block in PAGE.read_text().split("```yaml\n")[1:]]


def simulated(name: str, using: Configuration = ON) -> tuple[Engine, Transcript]:
    engine = Engine(using, REGISTRY)
    builders.made.append(engine.cluster)
    return engine, simulate(engine, manifests([str(EXAMPLES / name)]).objects)


def placed(transcript: Transcript) -> dict[str, str]:
    return {each.pod.name: each.node for each in transcript.placed}


def disturbed(engine: Engine) -> list[str]:
    """The exclusive pods beside which ordinary pods run."""
    nodes = engine.cluster.nodes
    rows = [list(nodes.pods(row).values()) for row in nodes.rows.tolist()]

    def is_shared(pod: Pod, here: list[Pod]) -> bool:
        return any(is_ordinary(other) and other is not pod for other in here)

    return [pod.name for here in rows for pod in here if is_exclusive(pod) and is_shared(pod, here)]


def test_one_mpi_worker_per_node() -> None:
    engine, transcript = simulated("mpi-workers.yaml")
    found = placed(transcript)

    workers = [found[f"worker-{at}"] for at in range(3)]
    assert sorted(workers) == ["work-1", "work-2", "work-3"]
    assert (found["launcher"], found["network-agent-2"]) == ("front", "work-2")
    (pending,) = transcript.pending
    assert pending.pod.name == "worker-3"
    assert "3 node(s) failed CoexistPolicy: an exclusive pod runs there" in pending.message
    assert disturbed(engine) == []


def test_without_the_gate_workers_share_their_nodes() -> None:
    engine, transcript = simulated("mpi-workers.yaml", OFF)

    assert transcript.pending == ()
    assert disturbed(engine)


def test_a_database_alone_on_a_node_of_its_size() -> None:
    engine, transcript = simulated("database.yaml")

    found = placed(transcript)
    assert found == {"orders-db": "large-2", "users-db": "large-1", "web": "small-1"}
    assert [each.pod.name for each in transcript.preempted] == ["batch"]
    assert disturbed(engine) == []


def test_an_unknown_policy_does_not_refuse_the_file() -> None:
    _, transcript = simulated("database.yaml")

    (pending,) = transcript.pending
    assert pending.pod.name == "misspelled"
    assert pending.message.startswith(
        "0/3 nodes are available: pod failed CoexistPolicy: spec.coexistPolicy must be "
        'Any or DaemonsetAndStaticPods, got "DaemonSetsAndStaticPods".'
    )


def test_the_smallest_node_is_preferred_on_request() -> None:
    text = (EXAMPLES / "scheduler.yaml").read_text()

    assert placed(simulated("sizes.yaml")[1]) == {"cache-0": "large", "cache-1": "medium"}
    found = placed(simulated("sizes.yaml", load(text, known=KNOWN))[1])
    assert found == {"cache-0": "small", "cache-1": "medium"}


@pytest.mark.parametrize("name", [path.name for path in sorted(EXAMPLES.glob("*.yaml"))])
def test_every_example_is_told_of(name: str) -> None:
    texts = [PAGE.read_text(), *(path.read_text() for path in EXAMPLES.iterdir())]
    assert any(f"examples/coexist-policy/{name}" in text for text in texts)


# The page


def block(kind: str, about: str = "") -> dict[str, Any]:
    texts = (text for text in BLOCKS if about in text)
    (found,) = (read for text in texts if (read := yaml.safe_load(text))["kind"] == kind)
    assert isinstance(found, dict)
    return found


def test_the_manifest_of_the_page_makes_exclusive_pods() -> None:
    template = block("Deployment")["spec"]["template"]
    made = builders.pod("solver", metadata=template["metadata"], spec=template["spec"])

    assert is_exclusive(made)
    assert is_ordinary(made)


def test_the_configuration_of_the_page_is_that_of_the_example() -> None:
    written = yaml.safe_load((EXAMPLES / "scheduler.yaml").read_text())
    assert block("KubeSchedulerConfiguration", "preferSmallestNode") == written


def test_the_limits_of_the_page_can_be_loaded() -> None:
    written = block("KubeSchedulerConfiguration", "ExclusiveNodeLimits")
    (profile,) = load(yaml.safe_dump(written), known=KNOWN).profiles

    assert any(each.name == "ExclusiveNodeLimits" for each in profile.points["filter"])


def test_the_page_forbids_daemonsets() -> None:
    assert block("ResourceQuota")["spec"]["hard"] == {"count/daemonsets.apps": "0"}
    rules = block("Role")["rules"]
    allowed = [rule["verbs"] for rule in rules if "daemonsets" in rule["resources"]]
    assert allowed == [["get", "list", "watch"]]
