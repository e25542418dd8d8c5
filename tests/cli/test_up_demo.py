"""`moorage up --demo` as its users and their scripts run it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from rich.console import Console

from moorage.cli.demo import Terminal
from moorage.demo import DemoContext, chapters
from tests.cli.invoking import Moorage
from tests.patience import PATIENCE_SECONDS


async def _demo(folder: Path, *flags: str) -> asyncio.subprocess.Process:
    # Elsewhere than in the repository, and without a terminal or a display.
    environment = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "moorage", "up", "--demo", *flags),
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_the_whole_story_ends_by_itself(tmp_path: Path) -> None:
    process = await _demo(tmp_path, "--once", "--no-browser")
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, err = (each.decode() for each in await process.communicate())

    assert (process.returncode, err) == (0, "")
    assert out.startswith("The cluster is ready: 116 nodes, https://127.0.0.1:")
    assert [each.title for each in chapters.CHAPTERS if each.title not in out] == []
    assert out.endswith("\nEvery check passed.\n")
    assert "\x1b" not in out
    assert "\r" not in out


async def test_it_stops_in_the_middle(tmp_path: Path) -> None:
    process = await _demo(tmp_path, "--pace=60")
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (line := await process.stdout.readline()).startswith(b"1/"):
            assert line, "it has ended"
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()

    assert (process.returncode, err) == (0, b"")


async def _expect_too_much(demo: DemoContext) -> None:
    demo.check("pigs fly", False, "none\x1b[2J did")


async def _stop(demo: DemoContext) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("play", "told"),
    [
        (_expect_too_much, "  expected: pigs fly\n  seen: none\\x1b[2J did\n"),
        (_stop, "The demo was stopped before its end.\n"),
    ],
    ids=["failed check", "stopped"],
)
def test_a_demo_that_fails_has_an_exit_code(
    play: object, told: str, moorage: Moorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = type(chapters.CHAPTERS[0])("A chapter", "that is not\nlike the others", play)  # type: ignore[arg-type]
    monkeypatch.setattr(chapters, "CHAPTERS", (chapter,))

    ended = moorage("up", "--demo", "--once", "--no-browser")

    assert ended.code == 1
    assert ended.err.endswith(told)
    assert "1/1  A chapter" in ended.out
    assert "Every check passed" not in ended.out


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--demo --nodes 10", "--nodes: not with --demo, which has a cluster of its own"),
        ("--demo --config x --data-dir y", "--data-dir, --config: not with --demo"),
        ("--demo --feature-gates CoexistPolicy=false", "--feature-gates: not with --demo"),
        ("--demo --no-scheduler --for 3", "--for, --no-scheduler: not with --demo"),
        ("--demo --scheduler none", "--scheduler none: not with --demo"),
        ("--once --pace 2 --no-browser", "--once, --pace: only with --demo"),
    ],
)
def test_flags_that_mean_nothing_together(flags: str, told: str, moorage: Moorage) -> None:
    ended = moorage("up", *flags.split())

    assert ended.code == 2
    assert ended.err.startswith(told)
    assert ended.err.count("\n") == 1


def test_on_a_terminal_it_counts_while_it_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(force_terminal=True, width=80)
    monkeypatch.setattr("moorage.cli.demo.plain_console", lambda: console)
    with Terminal().show_waiting("all pods have a node", lambda: "1,234 have one"):
        pass

    assert "all pods have a node (1,234 have one)" in capsys.readouterr().out
