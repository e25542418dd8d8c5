"""What a pod asks for and what it holds: init containers, sidecars, overhead, resizes."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moorage.objects.decode import from_builtins
from moorage.objects.pod import Pod
from moorage.objects.quantity import MOST_AMOUNT
from moorage.objects.resources import amounts, is_counted, is_extended
from tests.builders import pod_manifest

MIB = 2**20
#: What a container that names no memory counts for in scoring.
SILENT_MEMORY = 200 * MIB


def container(name: str = "main", *, sidecar: bool = False, **requests: Any) -> dict[str, Any]:
    written = {"name": name, "resources": {"requests": requests}}
    return {**written, "restartPolicy": "Always"} if sidecar else written


def build(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    given_spec = {"containers": list(containers), "initContainers": list(init), **spec}
    built = from_builtins("Pod", pod_manifest(spec=given_spec, status=status))
    assert isinstance(built, Pod)
    return built


def seen(name: str = "main", allocated: Any = None, **requests: str) -> dict[str, Any]:
    """The status of a container."""
    status: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return status if allocated is None else {**status, "allocatedResources": allocated}


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


@pytest.mark.parametrize(
    ("asks", "requests"),
    [
        pytest.param(build(container()), {}, id="nothing"),
        pytest.param(
            build(container("a", cpu="1", memory="1Mi"), container("b", cpu="250m")),
            {"cpu": 1250, "memory": MIB},
            id="containers add up",
        ),
        pytest.param(
            build(container("a", cpu="1n"), container("b", cpu="1n")),
            {"cpu": 1},
            id="rounded up once, not per container",
        ),
        pytest.param(
            build(container(cpu="1"), init=(container("i", cpu="3"), container("j", cpu="2"))),
            {"cpu": 3000},
            id="the largest init container counts",
        ),
        pytest.param(
            build(container(cpu="4"), init=(container("i", cpu="3", memory="9"),)),
            {"cpu": 4000, "memory": 9},
            id="per resource",
        ),
        pytest.param(
            build(container(cpu="1"), init=(container("s", sidecar=True, cpu="2"),)),
            {"cpu": 3000},
            id="a sidecar runs along",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                init=(container("s", sidecar=True, cpu="2"), container("i", cpu="5")),
            ),
            {"cpu": 7000},
            id="an init container after a sidecar runs beside it",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                init=(container("i", cpu="5"), container("s", sidecar=True, cpu="2")),
            ),
            {"cpu": 5000},
            id="an init container before a sidecar does not",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                init=(
                    container("s", sidecar=True, cpu="2"),
                    container("i", cpu="5"),
                    container("t", sidecar=True, cpu="3"),
                    container("j", cpu="1"),
                ),
            ),
            {"cpu": 7000},
            id="sidecars in between",
        ),
        pytest.param(
            build(container(cpu="1"), overhead={"cpu": "250m", "memory": "5"}),
            {"cpu": 1250, "memory": 5},
            id="overhead comes on top",
        ),
        pytest.param(
            build(
                container(cpu="1", memory="5"),
                resources={"requests": {"cpu": "500m"}},
                overhead={"cpu": "100m"},
            ),
            {"cpu": 600, "memory": 5},
            id="pod-level requests replace, overhead still comes on top",
        ),
        pytest.param(
            build(
                container(
                    "main", sidecar=False, **{"hugepages-2Mi": "4Mi", "example.com/gpu": "1"}
                ),
                resources={
                    "requests": {
                        "hugepages-2Mi": "8Mi",
                        "example.com/gpu": "7",
                        "ephemeral-storage": "3",
                    }
                },
            ),
            {"hugepages-2Mi": 8 * MIB, "example.com/gpu": 1},
            id="only cpu, memory and hugepages have a pod level",
        ),
        pytest.param(
            build(
                container(
                    "main", sidecar=False, cpu="0", **{"example.com/gpu": "0", "unknown": "3"}
                )
            ),
            {"cpu": 0, "example.com/gpu": 0},
            id="an explicit zero is kept, an unknown resource is not",
        ),
        pytest.param(
            build(container("a", memory="5E"), container("b", memory="5E")),
            {"memory": MOST_AMOUNT},
            id="no more than can be counted",
        ),
    ],
)
def test_requests(asks: Pod, requests: dict[str, int]) -> None:
    assert dict(asks.requests) == requests


@pytest.mark.parametrize(
    ("runs", "held"),
    [
        pytest.param(
            build(container(cpu="1"), status={"containerStatuses": [{"name": "main"}]}),
            1000,
            id="a status without resources says nothing",
        ),
        pytest.param(
            build(container(cpu="1"), status={"containerStatuses": [seen(cpu="2")]}),
            2000,
            id="what was granted counts if it is more",
        ),
        pytest.param(
            build(container(cpu="3"), status={"containerStatuses": [seen(cpu="2")]}),
            3000,
            id="what is asked counts if it is more",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                status={"containerStatuses": [seen(allocated={"cpu": "4"}, cpu="2")]},
            ),
            4000,
            id="what is allocated counts if it is more",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                status={
                    "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "4"}}]
                },
            ),
            1000,
            id="allocated alone does not count",
        ),
        pytest.param(
            build(
                container(cpu="3"),
                status={"containerStatuses": [seen(cpu="2")], "conditions": [INFEASIBLE]},
            ),
            2000,
            id="an infeasible resize leaves the spec out",
        ),
        pytest.param(
            build(
                container(cpu="3"),
                status={"containerStatuses": [seen(cpu="2")], "conditions": [DEFERRED]},
            ),
            3000,
            id="a deferred resize does not",
        ),
        pytest.param(
            build(container(cpu="3"), status={"conditions": [INFEASIBLE]}),
            3000,
            id="without granted resources the spec is all there is",
        ),
        pytest.param(
            build(container(cpu="1"), status={"containerStatuses": [seen("other", cpu="9")]}),
            1000,
            id="the status of another container",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                init=(container("s", sidecar=True, cpu="1"),),
                status={"initContainerStatuses": [seen("s", cpu="4")]},
            ),
            5000,
            id="a sidecar has its own status",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                init=(container("i", cpu="2"),),
                status={"initContainerStatuses": [seen("i", cpu="9")]},
            ),
            2000,
            id="of other init containers it is never used",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                resources={"requests": {"cpu": "2"}},
                status={"resources": {"requests": {"cpu": "3", "memory": "7"}}},
            ),
            3000,
            id="pod level, only names of the spec",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                resources={"requests": {"cpu": "2"}},
                status={
                    "resources": {"requests": {"cpu": "3"}},
                    "allocatedResources": {"cpu": "4"},
                },
            ),
            4000,
            id="pod level, allocated",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                resources={"requests": {"cpu": "2"}},
                status={"resources": {"requests": {}}, "conditions": [INFEASIBLE]},
            ),
            0,
            id="pod level, infeasible: what is not granted is zero",
        ),
    ],
)
def test_held_cpu(runs: Pod, held: int) -> None:
    assert dict(runs.held.requests)["cpu"] == held
    assert "memory" not in dict(runs.held.requests)


TWO = container("a", cpu="1"), container("b", cpu="3")


@pytest.mark.parametrize(
    ("runs", "held"),
    [
        pytest.param(
            build(*TWO, status={"containerStatuses": [seen("a", cpu="3"), seen("b", cpu="1")]}),
            {"cpu": 4000},
            id="what is in effect is not more in all",
        ),
        pytest.param(
            build(*TWO, status={"containerStatuses": [seen("a", cpu="2"), seen("b", cpu="5")]}),
            {"cpu": 7000},
            id="what is in effect is more in all",
        ),
        pytest.param(
            build(
                *TWO,
                status={"containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "2"}}]},
            ),
            {"cpu": 5000},
            id="what was granted counts without what is in effect",
        ),
        pytest.param(
            build(*TWO, status={"containerStatuses": [seen("a", cpu="2")]}),
            {"cpu": 5000},
            id="of a container without a report what is asked counts",
        ),
        pytest.param(
            build(
                *TWO,
                status={"containerStatuses": [seen("a", cpu="2")], "conditions": [INFEASIBLE]},
            ),
            {"cpu": 2000},
            id="an infeasible resize: without a report nothing counts",
        ),
        pytest.param(
            build(*TWO, status={"conditions": [INFEASIBLE]}),
            {},
            id="an infeasible resize without any report",
        ),
        pytest.param(
            build(
                *TWO, status={"containerStatuses": [seen("a", cpu="9")], "conditions": [DEFERRED]}
            ),
            {"cpu": 12000},
            id="a deferred resize",
        ),
        pytest.param(
            build(
                container(cpu="1"),
                init=(container("i", cpu="2"),),
                status={"initContainerStatuses": [seen("i", cpu="9")]},
            ),
            {"cpu": 9000},
            id="init containers count by their status, too",
        ),
        pytest.param(
            build(
                *TWO,
                status={
                    "resources": {"requests": {"cpu": "5"}},
                    "allocatedResources": {"cpu": "6", "memory": "7"},
                },
            ),
            {"cpu": 6000, "memory": 7},
            id="what is reported of the pod replaces its containers",
        ),
        pytest.param(
            build(
                *TWO,
                resources={"requests": {"cpu": "5"}},
                status={"resources": {"requests": {"cpu": "6", "memory": "7"}}},
            ),
            {"cpu": 6000, "memory": 7},
            id="pod level, all names that are reported",
        ),
        pytest.param(
            build(*TWO, resources={"requests": {"cpu": "2"}}, overhead={"cpu": "1"}),
            {"cpu": 3000},
            id="pod level, without a report",
        ),
    ],
)
def test_since_1_37_the_largest_sum_counts(runs: Pod, held: dict[str, int]) -> None:
    runs = msgspec.structs.replace(runs, counts_by_sums=True)

    assert dict(runs.held.requests) == held


def test_pod_level_requests_of_neither_cpu_nor_memory_leave_defaults_to_containers() -> None:
    runs = build(
        container(cpu="1"), container("b"), resources={"requests": {"ephemeral-storage": "1"}}
    )

    assert runs.held.nonzero_cpu_milli == 1100
    assert runs.held.nonzero_memory_bytes == 2 * SILENT_MEMORY


@pytest.mark.parametrize(
    ("runs", "cpu", "memory"),
    [
        pytest.param(build(container()), 100, SILENT_MEMORY, id="a silent container"),
        pytest.param(
            build(container("a"), container("b")), 200, 2 * SILENT_MEMORY, id="for each container"
        ),
        pytest.param(
            build(container("a", cpu="1"), container("b", memory="5")),
            1100,
            SILENT_MEMORY + 5,
            id="per resource",
        ),
        pytest.param(build(container(cpu="0", memory="0")), 0, 0, id="zero is said, not silence"),
        pytest.param(
            build(container(cpu="1", memory="5"), init=(container("i"), container("j"))),
            1000,
            SILENT_MEMORY,
            id="init containers too",
        ),
        pytest.param(
            build(container(cpu="1"), init=(container("s", sidecar=True),)),
            1100,
            2 * SILENT_MEMORY,
            id="sidecars too",
        ),
        pytest.param(
            build(container("a"), container("b"), resources={"requests": {"cpu": "1"}}),
            1000,
            2 * SILENT_MEMORY,
            id="pod level: defaults only for what is missing altogether",
        ),
        pytest.param(
            build(container("a", memory="5"), container("b"), resources={"requests": {"cpu": "1"}}),
            1000,
            5,
            id="pod level: nothing is missing",
        ),
        pytest.param(
            build(container(), overhead={"cpu": "50m"}), 150, SILENT_MEMORY, id="overhead on top"
        ),
    ],
)
def test_nonzero(runs: Pod, cpu: int, memory: int) -> None:
    assert (runs.held.nonzero_cpu_milli, runs.held.nonzero_memory_bytes) == (cpu, memory)


def test_scoring_does_not_look_at_pod_level_requests() -> None:
    asks = build(container(memory="5"), resources={"requests": {"cpu": "2", "memory": "9"}})

    assert dict(asks.spec.scoring_requests) == {"cpu": 100, "memory": 5}
    assert dict(asks.requests) == {"cpu": 2000, "memory": 9}


@pytest.mark.parametrize(
    ("name", "extended", "counted"),
    [
        ("cpu", False, True),
        ("memory", False, True),
        ("ephemeral-storage", False, True),
        ("pods", False, False),
        ("storage", False, False),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("example.com/gpu", True, True),
        ("Example.com/gpu", False, False),
        ("example.com/", False, False),
        ("/gpu", False, False),
        ("a/b/c", False, False),
        ("requests.example.com/gpu", False, False),
        ("kubernetes.io/batch", False, True),
        ("node.kubernetes.io/batch", False, True),
        ("example.com/-gpu", False, False),
        ("example.com/" + "g" * 63, True, True),
        ("example.com/" + "g" * 64, False, False),
        ("a" * 250 + ".com/gpu", False, False),
        ("unknown", False, False),
    ],
)
def test_which_resources_count(name: str, extended: bool, counted: bool) -> None:
    assert (is_extended(name), is_counted(name)) == (extended, counted)


def test_a_domain_may_be_as_long_as_dns_allows_with_its_prefix() -> None:
    label = "a" * 59
    longest = ".".join([label] * 4) + ".com"

    assert len("requests." + longest) <= 253
    assert is_extended(longest + "/gpu")
    assert not is_extended(longest + "aaaaaa/gpu")


def test_amounts_are_sorted_and_in_native_units() -> None:
    nano = 10**9

    assert amounts({"memory": 5 * nano, "cpu": nano // 2, "bogus": nano}) == (
        ("cpu", 500),
        ("memory", 5),
    )


@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=4),
    st.lists(st.tuples(st.booleans(), st.integers(0, 5000)), max_size=5),
    st.integers(0, 500),
)
def test_requests_are_the_peak_of_every_moment(
    running: list[int], init: list[tuple[bool, int]], overhead: int
) -> None:
    asks = build(
        *(container(f"c{at}", cpu=f"{milli}m") for at, milli in enumerate(running)),
        init=tuple(
            container(f"i{at}", sidecar=sidecar, cpu=f"{milli}m")
            for at, (sidecar, milli) in enumerate(init)
        ),
        overhead={"cpu": f"{overhead}m"},
    )

    def sidecars(until: int) -> int:
        return sum(milli for is_sidecar, milli in init[:until] if is_sidecar)

    moments = [sidecars(at) + milli for at, (_, milli) in enumerate(init)]
    moments.append(sidecars(len(init)) + sum(running))
    assert dict(asks.requests)["cpu"] == max(moments) + overhead
