"""Every check of the demo can fail, and then says what was expected and seen."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from msgspec.structs import replace

from moorage.demo import MANIFESTS, CheckFailed, DemoContext
from moorage.demo.chapters import CHAPTERS
from moorage.demo.demo_client import DemoPod
from moorage.demo.resource_chapters import DEVICES, DISKS, EXPLANATION, GPUS, PREEMPTION
from moorage.demo.workload_chapters import DEPLOYMENT, EXCLUSIVE, GANGS, JOB
from moorage.engine.explain import Explanation, Suggestion
from moorage.framework.edits import LowerRequest
from tests.demo.pretending import Heard, Script, demo, node, pod

NODES = [node(f"{zone}{at}", zone) for zone in "abc" for at in range(3)]
WEB = [pod(f"web-{zone}{at}", f"{zone}{at}", app="web") for zone in "abc" for at in range(3)]

AGENTS = [
    pod(
        f"agent-{each['metadata']['name']}",
        each["metadata"]["name"],
        app="agent",
        owner="DaemonSet",
    )
    for each in NODES
]
RANKS = [
    pod(f"mpi-{at}", where, app="mpi", owner="Job")
    for at, where in enumerate(("a0", "a1", "b0", "b1"))
]
CROWD = [pod(f"crowd-{at}", "c0", app="crowd") for at in range(300)]
REFUSED = pod("intruder", "a0", failure=("CoexistPolicy", "failed CoexistPolicy"))
MPI: Script = {"agent.yaml": AGENTS, "mpi.yaml": RANKS, "crowd.yaml": CROWD, "create": [REFUSED]}

KEPT_OFF = "0/9 nodes are available: 9 node(s) with GPUs only take pods with a GPU limit (set one)"
GPU_PODS = [pod("with-gpu", "gpu-0"), pod("without-gpu", refusal=KEPT_OFF)]

NO_DEVICE = "0/9 nodes are available: 9 cannot allocate all claims. preemption: no"
INFER = [pod(f"infer-{at}", f"accel-{at % 2}", app="infer") for at in range(15)]
SHARING = [pod("model", "accel-1"), pod("monitor", "accel-1")]
CLAIMS: Script = {
    "devices.yaml": [*INFER, *SHARING],
    "late.yaml": [pod("late", refusal=NO_DEVICE)],
    "delete monitor": [pod("late", "accel-1")],
}

SLOW = "0/9 nodes are available: 9 Insufficient disk read bandwidth. preemption: no"
INGEST = [
    pod("ingest-0", "disk-fast-0", app="ingest"),
    pod("ingest-1", "disk-fast-1", app="ingest"),
    pod("ingest-2", refusal=SLOW, app="ingest"),
]
MEASURED = [pod("ingest-2", "disk-slow-2", app="ingest")]

BATCH = [pod(f"batch-{at}", f"small-{at % 2}", app="batch") for at in range(8)]
NEXT = [pod(f"batch-{at}", app="batch", refusal="0/9 nodes") for at in (8, 9)]
WHY = "Preempted by pod uid-of-urgent on node small-0"


BATCHES: Script = {
    "batch.yaml": BATCH,
    "urgent.yaml": ["batch-0", "batch-2", pod("urgent", "small-0"), *NEXT],
}


def _gang(name: str, count: int) -> list[DemoPod]:
    """A gang of which so many pods have a node in the first rack, and the others wait."""
    size = 4 if name == "tight" else 6
    return [
        pod(f"{name}-{at}", "rack-1-0", app=name)
        if at < count
        else pod(f"{name}-{at}", app=name, refusal="minCount (6) cannot be satisfied")
        for at in range(size)
    ]


LACKS = "4 x 4 cpu: 4 wait. In one rack: best is rack-2 with room for 2, 2 short."
RIVALS: Script = {
    "gangs.yaml": [*_gang("red", 6), *_gang("blue", 0)],
    "tight.yaml": _gang("tight", 0),
    "delete blue": _gang("tight", 4),
}


class Case(NamedTuple):
    run: Callable[[DemoContext], Awaitable[None]]
    script: Script
    #: The check that fails, and what was seen; empty if all pass.
    expected: str = ""
    seen: str = ""
    events: Sequence[str] = ()


CASES = {
    "deployment: all is well": Case(DEPLOYMENT.run, {"web.yaml": WEB}),
    "deployment: a pod waits": Case(
        DEPLOYMENT.run, {"web.yaml": [*WEB[1:], pod("x", app="web")]}, "have a node", "8 have one"
    ),
    "deployment: zones are uneven": Case(
        DEPLOYMENT.run,
        {"web.yaml": [*WEB[1:], pod("x", "b0", app="web")]},
        "three pods in each zone",
        "{'a': 2, 'b': 4, 'c': 3}",
    ),
    "job: pods wait": Case(
        JOB.run,
        {"render.yaml": [pod("render-0", "a0", app="render")]},
        "all 2,000 pods have a node",
        "1 of 1 have one",
    ),
    "job: nothing was reused": Case(
        JOB.run,
        {"render.yaml": [pod(f"render-{at}", "a0", app="render") for at in range(2_000)]},
        "more than 90%",
        "0.0%",
    ),
    "exclusive: all is well": Case(EXCLUSIVE.run, MPI),
    "exclusive: a node has no agent": Case(
        EXCLUSIVE.run, {**MPI, "agent.yaml": AGENTS[1:]}, "every node has", "8 of 9 nodes"
    ),
    "exclusive: two ranks share a node": Case(
        EXCLUSIVE.run,
        {**MPI, "mpi.yaml": [*RANKS[1:], pod("mpi-0", "b0", app="mpi")]},
        "four ranks have a node each",
        "['a1', 'b0', 'b1', 'b0']",
    ),
    "exclusive: somebody is with a rank": Case(
        EXCLUSIVE.run,
        {**MPI, "crowd.yaml": [*CROWD[1:], pod("crowd-0", "a0", app="crowd")]},
        "none of them is with a rank",
        "['crowd-0']",
    ),
    "exclusive: the intruder gets in": Case(
        EXCLUSIVE.run, {**MPI, "create": [pod("intruder", "a0")]}, "the kubelet refuses it"
    ),
    "gpus: all is well": Case(GPUS.run, {"gpus.yaml": GPU_PODS}),
    "gpus: a pod without one gets in": Case(
        GPUS.run,
        {"gpus.yaml": [GPU_PODS[0], pod("without-gpu", "gpu-1")]},
        "without-gpu waits",
        "it is on gpu-1",
    ),
    "gpus: a pod with one waits": Case(
        GPUS.run, {"gpus.yaml": [pod("with-gpu"), GPU_PODS[1]]}, "with-gpu is on", "no node"
    ),
    "gpus: another pod is there": Case(
        GPUS.run, {"gpus.yaml": [*GPU_PODS, pod("web", "gpu-3")]}, "no other pod", "['web']"
    ),
    "devices: all is well": Case(DEVICES.run, CLAIMS),
    "devices: a pod has none": Case(
        DEVICES.run,
        {**CLAIMS, "devices.yaml": [*INFER[1:], *SHARING]},
        "fifteen pods have an accelerator",
        "14 have one",
    ),
    "devices: those that share are apart": Case(
        DEVICES.run,
        {**CLAIMS, "devices.yaml": [*INFER, SHARING[0], pod("monitor", "accel-0")]},
        "model and monitor share one",
        "['accel-1', 'accel-0']",
    ),
    "devices: one is given away twice": Case(
        DEVICES.run,
        {**CLAIMS, "devices.yaml": [*INFER, pod("model", "accel-0"), pod("monitor", "accel-0")]},
        "more than eight",
        "{'accel-0': 9, 'accel-1': 7}",
    ),
    "devices: the last one does not wait": Case(
        DEVICES.run, {**CLAIMS, "late.yaml": [pod("late", "accel-0")]}, "late waits"
    ),
    "devices: the shared one is not freed": Case(
        DEVICES.run, {**CLAIMS, "delete monitor": []}, "so late gets it", "cannot allocate"
    ),
    "gangs: all is well": Case(GANGS.run, RIVALS, events=[LACKS]),
    "gangs: both have a part": Case(
        GANGS.run,
        {"gangs.yaml": [*_gang("red", 4), *_gang("blue", 4)]},
        "one gang has all six",
        "{'red': 4, 'blue': 4}",
    ),
    "gangs: the other holds something": Case(
        GANGS.run,
        {"gangs.yaml": [*_gang("red", 6), *_gang("blue", 2)]},
        "blue waits and holds nothing",
        "2 of its pods have a node",
    ),
    "gangs: nobody says what is missing": Case(
        GANGS.run, RIVALS, "tight waits for a rack", "no such event"
    ),
    "gangs: part of one stays without a node": Case(
        GANGS.run,
        {**RIVALS, "delete blue": _gang("tight", 3)},
        "tight has all four pods",
        "3 have a node",
        events=[LACKS],
    ),
    "gangs: one is in two racks": Case(
        GANGS.run,
        {**RIVALS, "delete blue": [*_gang("tight", 3), pod("t", "rack-2-0", app="tight")]},
        "they are all in one rack",
        "['rack-1', 'rack-2']",
        events=[LACKS],
    ),
    "disks: all is well": Case(DISKS.run, {"ingest.yaml": INGEST, "patch": MEASURED}),
    "disks: two share a disk": Case(
        DISKS.run,
        {"ingest.yaml": [INGEST[0], pod("ingest-1", "disk-fast-0", app="ingest"), INGEST[2]]},
        "each fast disk has one",
        "['disk-fast-0']",
    ),
    "disks: the third was not refused": Case(
        DISKS.run, {"ingest.yaml": INGEST[:2]}, "the third waits", "it was not refused"
    ),
    "disks: the measurement is missed": Case(
        DISKS.run, {"ingest.yaml": INGEST}, "the third goes to disk-slow-2", "disk-fast-1']"
    ),
    "preemption: all is well": Case(PREEMPTION.run, BATCHES, events=[WHY, WHY]),
    "preemption: nodes are not full": Case(
        PREEMPTION.run, {"batch.yaml": BATCH[1:]}, "four pods each", "{'small-1': 4, 'small-0': 3}"
    ),
    "preemption: nobody makes way": Case(
        PREEMPTION.run, {"batch.yaml": BATCH, "urgent.yaml": [pod("urgent")]}, "urgent has a node"
    ),
    "preemption: three made way": Case(
        PREEMPTION.run,
        {**BATCHES, "urgent.yaml": ["batch-0", "batch-2", "batch-4", pod("urgent", "small-0")]},
        "two pods had to go",
        "['batch-0', 'batch-2', 'batch-4']",
    ),
    "preemption: one was not told": Case(
        PREEMPTION.run, BATCHES, "their events say why", WHY, events=[WHY, "for another reason"]
    ),
}


ADVICE = Suggestion(
    kind="resources",
    plugins=("NodeResourcesFit",),
    problem="2 nodes were 100m cpu short",
    remedy="it asked for 100m less cpu",
    effect="fits",
    edits=(LowerRequest("cpu", 100),),
    count=2,
    nodes=("a0", "a1"),
)
MORE = replace(ADVICE, edits=(LowerRequest("cpu", 900),), count=3, nodes=("a0", "a1", "b0"))
REPORT = pod("report", refusal="0/9 nodes are available: 9 Insufficient cpu")


class Advised(NamedTuple):
    suggestions: tuple[Suggestion, ...]
    node: str
    expected: str = ""
    seen: str = ""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Advised((MORE, ADVICE), "a1"), id="the least change is made"),
        pytest.param(Advised((), "a1", "less cpu would help", "[]"), id="no advice"),
        pytest.param(Advised((ADVICE,), "", "the advice was right", "it waits"), id="bad advice"),
        pytest.param(Advised((ADVICE,), "b0", "one of the 2", "b0"), id="another node"),
    ],
)
async def test_advice_is_followed(case: Advised, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Explanation(
        "default/report", "default-scheduler", "pending", suggestions=case.suggestions
    )
    monkeypatch.setattr(DemoContext, "explain_pod", lambda demo, name: told)
    made = demo({"report.yaml": [REPORT], "create": [pod("report", case.node)]}, {})

    if case.expected:
        with pytest.raises(CheckFailed) as broken:
            await EXPLANATION.run(made)
        assert case.expected in broken.value.expected
        assert case.seen in broken.value.seen
        return
    await EXPLANATION.run(made)
    assert isinstance(made.display, Heard)
    assert (
        "sed 's/\"16\"/15900m/' report.yaml | kubectl replace --force -f -" in made.display.commands
    )


@pytest.mark.parametrize("name", CASES)
async def test_promises(name: str) -> None:
    case = CASES[name]
    events = [{"message": each} for each in case.events]
    made = demo(case.script, {"nodes": NODES, "events": events})
    if not case.expected:
        await case.run(made)
        return
    with pytest.raises(CheckFailed) as broken:
        await case.run(made)
    assert case.expected in broken.value.expected
    assert case.seen in broken.value.seen


async def test_the_commands_of_a_chapter_name_files_that_are_there() -> None:
    """And what is applied is what the command says: both are by the name of the file."""
    made = demo(
        {**MPI, **BATCHES, "gpus.yaml": GPU_PODS}, {"nodes": NODES, "events": _told(WHY, WHY)}
    )
    for run in (EXCLUSIVE.run, GPUS.run, PREEMPTION.run):
        await run(made)

    assert isinstance(made.display, Heard)
    named = re.findall(r"-f (\S+)", " ".join(made.display.commands))
    assert {"agent.yaml", "mpi.yaml", "crowd.yaml", "gpus.yaml", "batch.yaml"} < set(named)
    assert [name for name in named if not (MANIFESTS / name).is_file()] == []


def _told(*messages: str) -> list[dict[str, Any]]:
    return [{"message": each} for each in messages]


def test_what_a_chapter_is_about_fits_a_small_terminal() -> None:
    for chapter in CHAPTERS:
        lines = chapter.about.splitlines()
        assert len(lines) == 2, chapter.title
        assert max(map(len, lines)) <= 80, chapter.title


def test_the_kind_of_the_disks_is_the_one_that_is_deployed() -> None:
    deployed = Path(__file__).parents[2] / "deploy" / "disk-io" / "nodediskiostatuses.yaml"

    assert (MANIFESTS / deployed.name).read_text() == deployed.read_text()


def test_every_manifest_is_one() -> None:
    """Those for kubectl, that is: the nodes are of a file of ours."""
    for path in MANIFESTS.glob("*.yaml"):
        found: list[Mapping[str, Any]] = list(yaml.safe_load_all(path.read_text()))
        if path.name != "cluster.yaml":
            assert all({"apiVersion", "kind"} <= each.keys() for each in found), path.name
