"""Plugins in a file, tried beside the default ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.cli.inputs import EngineOptions, load_plugins
from moorage.cli.run import record_settings
from moorage.engine.registry import RegistryError, registry
from tests.cli.invoking import Moorage

POLICY = """
from dataclasses import dataclass

from moorage.framework.plugin import NodeFilter, NodeScore

@dataclass
class _Helper:
    text: str

class _Base(NodeFilter):
    pass

class NoB(_Base):
    name = "NoB"

    def filter_node(self, pod, node):
        return _Helper("node(s) were not a").text if node.name != "a" else None
"""
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: b}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: app}]}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: %s}]}}
"""
REASON = "0/1 nodes are available: 1 node(s) were not a."

BROKEN = {
    "no Python": ("class", "policy.py: cannot be loaded: SyntaxError: "),
    "an exception": ("1 / 0", "policy.py: cannot be loaded: ZeroDivisionError: division by zero"),
    "no plugin": ("x = 1", "policy.py: has no Plugin class"),
    "only imported plugins": (
        "from moorage.framework.plugin import NodeFilter",
        "policy.py: has no Plugin class",
    ),
    "no name": (
        "from moorage.framework.plugin import Plugin\nclass P(Plugin): pass",
        "policy.py: P has no name",
    ),
    "something is missing": (
        "from moorage.framework.plugin import NodeFilter\nclass P(NodeFilter): name = 'P'",
        "policy.py: P does not define filter_node",
    ),
    "a name that is taken": (
        POLICY.replace('"NoB"', '"NodeName"'),
        "policy.py: NoB: there is a plugin 'NodeName' already",
    ),
}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    path = tmp_path / "policy.py"
    path.write_text(POLICY)
    return path


def test_plugins_of_a_file_decide_without_a_configuration(moorage: Moorage, policy: Path) -> None:
    cluster = policy.with_name("cluster.yaml")

    assert REASON not in moorage("simulate", str(cluster)).out
    assert REASON in moorage("simulate", "--plugins", str(policy), str(cluster)).out


@pytest.mark.parametrize("command", ["explain web", "fit"])
def test_questions_take_them_too(moorage: Moorage, policy: Path, command: str) -> None:
    cluster = policy.with_name("cluster.yaml")

    told = moorage(*command.split(), "--plugins", str(policy), str(cluster))

    assert told.code == 1
    assert REASON in told.out


def test_a_configuration_says_whether_they_decide(moorage: Moorage, policy: Path) -> None:
    cluster, config = policy.with_name("cluster.yaml"), policy.with_name("config.yaml")
    flags = ("--plugins", str(policy), "--config", str(config), str(cluster))

    config.write_text(CONFIG % "NoB")
    assert REASON in moorage("simulate", *flags).out
    config.write_text(CONFIG % "GPUAware")
    assert REASON not in moorage("simulate", *flags).out


def test_a_recording_tells_which_plugins_it_needs(moorage: Moorage, policy: Path) -> None:
    made = record_settings(policy.with_name("run"), "1Mi", EngineOptions(plugins=[policy]))
    assert made is not None
    recorder = made.begin()
    recorder.close()
    file = str(policy.with_name("run"))

    assert "NoB" in moorage("replay", file).err
    assert moorage("replay", "--plugins", str(policy), file).code == 0


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_used_is_named(name: str, tmp_path: Path) -> None:
    text, told = BROKEN[name]
    path = tmp_path / "policy.py"
    path.write_text(text)

    with pytest.raises(RegistryError) as raised:
        registry(load_plugins([path]))

    assert told in str(raised.value)


def test_a_file_that_is_not_there_is_told_in_one_line(moorage: Moorage, tmp_path: Path) -> None:
    ended = moorage("simulate", "--plugins", str(tmp_path / "absent.py"), str(tmp_path))

    assert ended.code == 2
    assert ended.err == f"{tmp_path / 'absent.py'}: no such file or directory\n"


def test_it_must_be_python(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="must be a Python file"):
        load_plugins([tmp_path / "policy.txt"])
