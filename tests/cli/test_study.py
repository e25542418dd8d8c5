"""`mooring study openb`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.invoking import Mooring
from tests.simulate.test_gpu_study import NODES, PODS
from tests.simulate.test_openb import write


def test_the_table(mooring: Mooring, tmp_path: Path) -> None:
    result = mooring("study", "openb", str(write(tmp_path, NODES, PODS)))

    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "2 nodes, 4 pods\n"
        "\n"
        "GPUAware                                             off  Filter   Score\n"
        "GPUs allocated, of 2                                   1       2       1\n"
        "GPU pods pending, of 2                                 1       0       1\n"
        "CPU pods pending, of 2                                 0       1       0\n"
        "CPU pods on GPU nodes                                  1       0       1\n"
        "GPU nodes with free GPUs                               1       0       1\n"
        "... but no CPU or memory for a pending GPU pod         1       0       1\n"
        "... nor for any GPU pod of the trace                   1       0       1\n"
    )


def test_another_list_of_pods(mooring: Mooring, tmp_path: Path) -> None:
    default = write(tmp_path, NODES, PODS) / "openb_pod_list_default.csv"
    (tmp_path / "few.csv").write_text("\n".join(default.read_text().splitlines()[:2]))

    assert "2 nodes, 1 pods" in mooring("study", "openb", str(tmp_path), "--pods", "few.csv").out


def test_bad_input(mooring: Mooring, tmp_path: Path) -> None:
    result = mooring("study", "openb", str(write(tmp_path, pods=["p,1,1,\x1b[2J,0,,LS,0"])))

    file = tmp_path / "openb_pod_list_default.csv"
    told = "line 2: num_gpu: not a whole number of at most 12 digits: '\\x1b[2J'"
    assert (result.code, result.out, result.err) == (2, "", f"{file}: {told}\n")
