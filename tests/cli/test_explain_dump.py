"""`moorage explain` on a dump as users have it, in a terminal of 80 columns."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from moorage.cli import rendering
from tests.cli.invoking import Moorage
from tests.dumps.cloud import DOMAIN, LONG, cloud_dump, node_name

_SCREEN = 40


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("dump") / "cluster.json.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, cloud_dump())).encode()))
    return str(path)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns, without colours."""
    monkeypatch.setattr(rendering, "_NO_LIMIT", 80)


def test_a_pod_on_a_node_that_is_gone_is_a_note(moorage: Moorage, dump: str) -> None:
    told = moorage("explain", "ml/train", dump).err

    assert "ignored 1 ServiceMonitor" in told
    assert "ignored 1 Pod: its node is not there, shop/checkout-7f9c6d5b8-00000 on ip-10" in told


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    "target", ["ml/train", f"ml/{LONG}-6b8d9-003", "pay/ledger", "", "edge/gateway-2"]
)
def test_an_answer_fits_one_screen(target: str, moorage: Moorage, dump: str) -> None:
    lines = moorage("explain", *filter(None, (target, dump))).out.splitlines()

    assert len(lines) <= _SCREEN
    assert max(map(len, lines)) <= 80


@pytest.mark.usefixtures("narrow")
def test_what_all_node_names_end_with_is_said_once(moorage: Moorage, dump: str) -> None:
    told = moorage("explain", f"ml/{LONG}-6b8d9-003", dump).out

    assert told.count(DOMAIN) == 1
    # No name is broken at the end of a line.
    assert all(re.fullmatch(r"ip-10-120-\d-\d{3}", each) for each in re.findall(r"ip-[\d-]+", told))


def test_all_waiting_pods_by_owner(moorage: Moorage, dump: str) -> None:
    result = moorage("explain", dump)

    assert result.code == 1
    first, *others = result.out.split("\n\n")
    assert (
        first == "14 pods fit nowhere; 1 pod fits now; 1 pod belongs to another scheduler (volcano)"
    )
    assert others[0].startswith(f"12 pods of deployment ml/{LONG}\n")
    assert not any("volcano" in each for each in others)
    assert "would fit 4 nodes if it tolerated nvidia.com/gpu:NoSchedule" in others[0]
    assert any("it waits until claim pay/nope exists" in each for each in others)


@pytest.mark.usefixtures("narrow")
def test_advice_that_names_no_node_is_a_sentence(moorage: Moorage, dump: str) -> None:
    told = moorage("explain", "pay/ledger", dump).out

    assert told.endswith("\n\nit waits until claim pay/nope exists\n")
    # Every node is meant, so none is named.
    assert "SUCH AS" not in told
    assert "WOULD FIT" not in told


def test_a_dump_is_given_as_for_fit(moorage: Moorage, dump: str) -> None:
    by_option = moorage("explain", "--from", dump)

    assert by_option == moorage("explain", dump)
    assert moorage("explain", "ml/train", "--from", dump) == moorage("explain", "ml/train", dump)
    assert moorage("simulate", "--from", dump) == moorage("simulate", dump)


def test_a_workload(moorage: Moorage, dump: str) -> None:
    runs = moorage("explain", "deploy/checkout", "-n", "shop", dump)
    waits = moorage("explain", f"deploy/{LONG}", "-n", "ml", dump)

    assert (runs.code, waits.code) == (0, 1)
    assert runs.out.startswith("deployment shop/checkout: 279 pods, 279 on 36 nodes, 0 waiting\n")
    assert f"deployment ml/{LONG}: 12 pods, 0 on 0 nodes, 12 waiting" in waits.out


def test_a_node(moorage: Moorage, dump: str) -> None:
    name = f"ip-10-120-0-105{DOMAIN}"
    told = moorage("explain", f"node/{name}", dump).out

    assert told.startswith(f"node {name}, cordoned\n")
    assert re.search(r"^cpu +8 +7\.2 +90%$", told, re.MULTILINE)
    assert "NodeUnschedulable: node(s) were unschedulable" in told


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("gateway-2",),
            "pod default/gateway-2: not found among 295 pods; did you mean edge/gateway-2?",
        ),
        (("ml/trian",), "pod ml/trian: not found among 295 pods; did you mean ml/train?"),
        (("deploy/chekout", "-n", "shop"), "did you mean shop/checkout?"),
        (("job/none",), "job default/none: not found among 0 jobs with pods"),
    ],
)
def test_what_was_meant(
    arguments: tuple[str, ...], error: str, moorage: Moorage, dump: str
) -> None:
    result = moorage("explain", *arguments, dump)

    assert result.code == 2
    assert error in result.err


@pytest.mark.usefixtures("narrow")
def test_long_names_push_nothing_off_the_screen(
    moorage: Moorage, dump: str, tmp_path: Path
) -> None:
    node = moorage("explain", f"node/{node_name(0)}", dump).out
    container = {"name": "c", "resources": {"requests": {"cpu": "4"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": LONG, "namespace": "ml"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    (tmp_path / "workload.json").write_text(json.dumps(deployment))
    fit = moorage("fit", "--from", dump, "-f", str(tmp_path / "workload.json")).out

    assert f"ml/{LONG}\n    NodeResourcesFit: Insufficient cpu" in node
    assert "pod edge/gateway-2\n    fits" in node
    assert f"deployment ml/{LONG}\n    0 of 4 pods fit; 12 are replaced" in fit


@pytest.mark.usefixtures("narrow")
def test_a_drain_names_nodes_without_what_all_end_with(moorage: Moorage, dump: str) -> None:
    told = moorage("fit", "--from", dump, "--drain", node_name(0)).out

    assert told.count(DOMAIN) == 1
    assert re.search(r"^shop/checkout-7f9c6d5b8-00036 +ip-10-120-0-100 +ip-10-", told, re.MULTILINE)


def test_json_of_all_waiting_pods(moorage: Moorage, dump: str) -> None:
    groups = json.loads(moorage("explain", dump, "-o", "json").out)

    assert groups[0]["owner"] == f"deployment ml/{LONG}"
    assert groups[0]["explanation"]["state"] == "pending"


def test_broken_gzip_names_the_file(moorage: Moorage, tmp_path: Path) -> None:
    path = tmp_path / "in.yaml.gz"
    path.write_bytes(b"\x1f\x8bnonsense")

    result = moorage("explain", "p", str(path))

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"{path}: broken gzip: ")
