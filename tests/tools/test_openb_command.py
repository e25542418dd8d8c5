"""`python -m tools.openb`."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.simulate.traces.csv_trace import read_openb
from tests.simulate.test_openb_trace import write
from tests.tools.test_openb_study import NODES, PODS
from tools.openb.__main__ import main


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write(tmp_path, NODES, PODS))]) == 0

    assert capsys.readouterr().out == (
        "2 nodes, 4 pods\n"
        "\n"
        "                                                     off  Filter   Score Reserve"
        " Packing     FGD\n"
        "GPUs allocated, of 2                                   1       2       1       2"
        "       1       1\n"
        "GPU pods pending, of 2                                 1       0       1       0"
        "       1       1\n"
        "CPU pods pending, of 2                                 0       1       0       1"
        "       0       0\n"
        "CPU pods on GPU nodes                                  1       0       1       0"
        "       1       1\n"
        "GPU nodes with free GPUs                               1       0       1       0"
        "       1       1\n"
        "... but no CPU or memory for a pending GPU pod         1       0       1       0"
        "       1       1\n"
        "... nor for any GPU pod of the trace                   1       0       1       0"
        "       1       1\n"
    )


def test_pods_come_and_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write(tmp_path, NODES, PODS)), "--churn", "4"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[3:]] == [
        "GPUs allocated",
        "GPU pods waiting",
        "CPU pods waiting",
    ]
    assert all(0.0 <= float(value) <= 2.0 for value in lines[3].split()[2:])


def test_another_list_of_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    default = write(tmp_path, NODES, PODS) / "openb_pod_list_default.csv"
    (tmp_path / "few.csv").write_text("\n".join(default.read_text().splitlines()[:2]))

    main([str(tmp_path), "--pods", "few.csv"])

    assert "2 nodes, 1 pods" in capsys.readouterr().out


def test_a_month_of_pods_that_run_as_long_as_those_of_the_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trace").mkdir()
    folder, month = write(tmp_path / "trace", NODES, PODS), tmp_path / "month"
    listed = folder / "openb_pod_list_default.csv"
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time"
    pods = ("a,1,1,0,0,,LS,Running,5,105,7", "b,1,1,1,1000,,LS,Pending,9,,")
    listed.write_text("\n".join((f"{header},deletion_time,scheduled_time", *pods, "")))

    assert main([str(folder), "--month", "50", "--into", str(month)]) == 0

    assert capsys.readouterr().out == f"moorage simulate --trace {month}\n"
    trace = read_openb(month)
    assert (len(trace.nodes), len(trace.pods)) == (2, 50)
    assert {each.seconds for each in trace.arrivals} == {98.0, None}
    assert 15 * 86400 < max(each.at for each in trace.arrivals) < 30 * 86400


def test_a_month_needs_a_place(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(write(tmp_path, NODES, PODS)), "--month", "50"])


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([str(write(tmp_path, pods=["p,1,1,\x1b[2J,0,,LS,0"]))])

    file = tmp_path / "openb_pod_list_default.csv"
    told = "line 2: num_gpu: not a whole number of at most 12 digits: '\\x1b[2J'"
    assert (code, *capsys.readouterr()) == (2, "", f"{file}: {told}\n")
