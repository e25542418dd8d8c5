"""What a page shows as typed into a terminal: commands behind `$ `, and what they printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_SECONDS
from tests.programs import find_assets, needs_program

PROMPT = "$ "
_CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)

ROOT = Path(__file__).parents[2]


# By itself `kubectl wait` waits for half a minute.
_PATIENCE = f"--timeout={PATIENCE_SECONDS:g}s"

needs_kubectl = needs_program("kubectl")

#: Runs a command, and gives what it printed.
Terminal = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a page, and what the page shows of it."""

    command: str
    shown: str

    def text(self) -> str:
        return f"{PROMPT}{self.command}\n{self.shown}"


def steps(page: Path) -> list[Step]:
    return [step for block in _CONSOLE.findall(page.read_text()) for step in _steps(block)]


def rewrite(page: Path, terminal: Terminal) -> None:
    """Types every command, in order, and writes down what it prints."""

    def typed(block: re.Match[str]) -> str:
        commands = [step.command for step in _steps(block[0])]
        return "".join(Step(command, terminal(command)).text() for command in commands)

    page.write_text(_CONSOLE.sub(typed, page.read_text()))


def _steps(block: str) -> list[Step]:
    assert block.startswith(PROMPT), block
    typed = re.split(rf"^{re.escape(PROMPT)}", block, flags=re.MULTILINE)[1:]
    return [Step(command, shown) for command, _, shown in (each.partition("\n") for each in typed)]


# What a scheduler at work prints differs from run to run.
_CHANGING = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:33935"),
    (
        re.compile(r"^in the queue: .*$", re.MULTILINE),
        "in the queue: unschedulable, after 1 attempt",
    ),
)


def _settle(printed: str) -> str:
    for changing, settled in _CHANGING:
        printed = changing.sub(settled, printed)
    return printed


@contextmanager
def terminal(command: str, folder: Path) -> Iterator[Terminal]:
    """A terminal as a page has its reader prepare it, with the cluster of a command in another."""
    kubeconfig, beside = folder / "kubeconfig", Path(sys.executable).parent
    variables = {
        **os.environ,
        "PATH": os.pathsep.join(map(str, (beside, os.environ["PATH"], find_assets()))),
        "KUBECONFIG": str(kubeconfig),
        "COLUMNS": "200",
    }

    def typed(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line.replace("kubectl wait", f"kubectl wait {_PATIENCE}")],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return _settle(done.stdout + done.stderr)

    started = command.removesuffix("kubeconfig") + str(kubeconfig)
    with subprocess.Popen(
        started.split(), cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True
    ) as cluster:
        try:
            assert cluster.stdout is not None
            assert cluster.stdout.readline().startswith("The cluster is ready: ")
            yield typed
        finally:
            cluster.terminate()
