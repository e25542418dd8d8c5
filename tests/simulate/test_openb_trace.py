"""Reading the OpenB trace: what becomes of its lines, and what is said of bad ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from moorage.documents.errors import InputError
from moorage.objects.node import HOSTNAME
from moorage.objects.pod import Pod
from moorage.simulate.traces.arrivals import ArrivalTrace
from moorage.simulate.traces.csv_trace import GPU, MODEL, NODES, PODS, read_openb

NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model"
POD_HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time"
NODE = "n1,32000,1024,0,"
POD = "p1,500,64,0,0,,LS,7"


def write(folder: Path, nodes: Sequence[str] = (NODE,), pods: Sequence[str] = (POD,)) -> Path:
    (folder / NODES).write_text("\n".join((NODE_HEADER, *nodes, "")))
    (folder / PODS).write_text("\n".join((POD_HEADER, *pods, "")))
    return folder


def excerpt(folder: Path, *pods: str) -> ArrivalTrace:
    return read_openb(write(folder, pods=pods))


def models(pod: Pod) -> list[str] | None:
    rule = pod.spec.node_affinity.required
    if rule is None:
        return None
    (term,) = rule.node_selector_terms
    (expression,) = term.match_expressions or ()
    assert (expression.key, expression.operator) == (MODEL, "In")
    return list(expression.values or ())


def test_nodes(tmp_path: Path) -> None:
    cpu, gpu = read_openb(write(tmp_path, nodes=[NODE, "n2,96000,2048,8,G2"])).nodes

    assert (cpu.name, dict(cpu.labels)) == ("n1", {HOSTNAME: "n1"})
    assert dict(cpu.allocatable) == {"cpu": 32_000, "memory": 2**30, "pods": 110}
    assert dict(gpu.labels) == {HOSTNAME: "n2", MODEL: "G2"}
    assert dict(gpu.allocatable) == {"cpu": 96_000, "memory": 2**31, "pods": 110, GPU: 8}


@pytest.mark.parametrize(
    ("line", "gpus", "accepts"),
    [
        pytest.param("p,500,64,0,0,,LS,0", 0, None, id="no GPU"),
        pytest.param("p,500,64,1,1000,,LS,0", 1, None, id="a whole GPU"),
        pytest.param("p,500,64,1,460,,BE,0", 1, None, id="a share is rounded up"),
        pytest.param("p,500,64,8,1000,G2,LS,0", 8, ["G2"], id="one model"),
        pytest.param("p,500,64,2,1000,G2|G3,LS,0", 2, ["G2", "G3"], id="one of two models"),
    ],
)
def test_pods(tmp_path: Path, line: str, gpus: int, accepts: list[str] | None) -> None:
    (pod,) = excerpt(tmp_path, line).pods

    room = {"cpu": 500, "memory": 64 * 2**20}
    assert dict(pod.requests) == ({**room, GPU: gpus} if gpus else room)
    (container,) = pod.spec.containers
    assert container.resources is not None
    limits = (container.resources.limits or {}).items()
    assert [(name, amount.value) for name, amount in limits] == ([(GPU, gpus)] if gpus else [])
    assert models(pod) == accepts
    assert pod.priority == 0


def test_pods_come_in_the_order_of_their_creation(tmp_path: Path) -> None:
    lines = (
        f"{name},1,1,0,0,,LS,{second}" for name, second in zip("cabd", (9, 7, 9, 10), strict=True)
    )

    assert [pod.name for pod in excerpt(tmp_path, *lines).pods] == ["a", "c", "b", "d"]


def test_how_long_pods_run(tmp_path: Path) -> None:
    write(tmp_path)
    header = f"{POD_HEADER},deletion_time,scheduled_time"
    lines = ("a,1,1,0,0,,LS,5,65,15", "b,1,1,0,0,,LS,5,65,", "c,1,1,0,0,,LS,5,,")
    (tmp_path / PODS).write_text("\n".join((header, *lines, "")))

    arrivals = read_openb(tmp_path).arrivals
    assert [(each.at, each.seconds) for each in arrivals] == [(5.0, 50.0), (5.0, 60.0), (5.0, None)]
    assert [each.seconds for each in read_openb(tmp_path).without_ends().arrivals] == [None] * 3


def test_another_list_of_pods(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "other.csv").write_text(f"{POD_HEADER}\nother,1,1,0,0,,LS,0\n")

    assert [pod.name for pod in read_openb(tmp_path / "other.csv").pods] == ["other"]


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        pytest.param(NODES, None, "no such file or directory", id="no nodes"),
        pytest.param(PODS, None, "no such file or directory", id="no pods"),
        pytest.param(NODES, b"", "there is nothing below the header", id="an empty file"),
        pytest.param(PODS, b"\xff\xfe", "not UTF-8 text (byte 0xff at 0)", id="no text"),
        pytest.param(
            NODES,
            b"sn,cpu_milli,memory_mib,gpu\nn,1,1,0\n",
            "there is no column 'model'",
            id="gone",
        ),
        pytest.param(PODS, b"sn,gpu\nn,1\n", "there is no column 'name'", id="another table"),
        pytest.param(
            NODES,
            f"{NODE_HEADER}\n{NODE}\nn2,1,1,1\n".encode(),
            "line 3: 4 fields, but the header has 5",
            id="a short line",
        ),
        pytest.param(
            NODES,
            f"{NODE_HEADER}\n{NODE},x\n".encode(),
            "line 2: 6 fields, but the header has 5",
            id="a long line",
        ),
        pytest.param(
            NODES,
            f'{NODE_HEADER}\n"n"x,1,1,0,\n'.encode(),
            "line 2: ',' expected after '\"'",
            id="a stray quote",
        ),
        pytest.param(
            NODES,
            f"{NODE_HEADER}\n{NODE}\n{NODE}\n".encode(),
            "line 3: sn: occurs more than once: 'n1'",
            id="a node twice",
        ),
        pytest.param(
            PODS,
            f"{POD_HEADER}\n,1,1,0,0,,LS,0\n".encode(),
            "line 2: name: must not be empty: ''",
            id="no name",
        ),
        pytest.param(
            PODS,
            f"{POD_HEADER}\np,1,1,1,0,G2||G3,LS,0\n".encode(),
            "line 2: gpu_spec: must not have an empty model: 'G2||G3'",
            id="no model",
        ),
    ],
)
def test_refusals(tmp_path: Path, file: str, content: bytes | None, told: str) -> None:
    path = write(tmp_path) / file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)

    with pytest.raises(InputError) as caught:
        read_openb(tmp_path)

    assert str(caught.value) == f"{path}: {told}"


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "1e3", "²", "1" * 13])
@pytest.mark.parametrize(
    ("file", "line", "field"),
    [
        (NODES, "n,{},1,0,", "cpu_milli"),
        (NODES, "n,1,{},0,", "memory_mib"),
        (NODES, "n,1,1,{},", "gpu"),
        (PODS, "p,{},1,0,0,,LS,0", "cpu_milli"),
        (PODS, "p,1,{},0,0,,LS,0", "memory_mib"),
        (PODS, "p,1,1,{},0,,LS,0", "num_gpu"),
        (PODS, "p,1,1,0,0,,LS,{}", "creation_time"),
    ],
)
def test_what_is_no_number(tmp_path: Path, file: str, line: str, field: str, text: str) -> None:
    path = write(tmp_path) / file
    header = NODE_HEADER if file == NODES else POD_HEADER
    path.write_text(f"{header}\n{line.format(text)}\n")

    with pytest.raises(InputError) as caught:
        read_openb(tmp_path)

    wrong = "not a whole number of at most 12 digits"
    assert str(caught.value) == f"{path}: line 2: {field}: {wrong}: {text!r}"
