"""`moorage up --demo`: the demo on a terminal, after which the cluster is the user's."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from moorage.app.local_cluster import Ready
from moorage.demo import MANIFESTS, CheckFailed, run_all_chapters
from moorage.engine.explain import Explanation

from .explain_text import NodeNames, suggestion_parts
from .rendering import line, plain, plain_console, table, trim
from .up_cluster import Plan, addresses, list_commands, metrics_command, own_command, run_cluster

# Time to read a step of the demo: about a minute for all of them.
_PACE_SECONDS = 3.0

# Exit code when a check failed, or when `--once` was stopped before the end.
_UNFINISHED = 1

_INDENT = 2

# Other systems have a desktop only if one of the variables says so.
_WITH_DESKTOP = ("darwin", "win32")
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def run_demo(plan: Plan, *, once: bool, browser: bool, pace: float | None) -> None:
    """Runs a cluster with the demo. If a check of the demo fails, both end."""
    if pace is None:
        pace = 0.0 if once else _PACE_SECONDS
    demo = _Demo(plan, once=once, browser=browser, pace=pace)
    try:
        run_cluster(plan, demo)
    except CheckFailed as broken:
        print(
            "The demo ends here, because a check failed.\n"
            f"  expected: {plain(broken.expected)}\n"
            f"  seen: {plain(broken.seen)}",
            file=sys.stderr,
        )
        raise typer.Exit(_UNFINISHED) from None
    if once and not demo.is_finished:
        print("The demo was stopped before its end.", file=sys.stderr)
        raise typer.Exit(_UNFINISHED)


class _Demo:
    """Plays the demo once the cluster is ready."""

    def __init__(self, plan: Plan, *, once: bool, browser: bool, pace: float) -> None:
        self._plan = plan
        self._once = once
        self._browser = browser
        self._pace = pace
        self.is_finished = False

    async def __call__(self, cluster: Ready, stopping: asyncio.Event) -> None:
        print(_opening(cluster), flush=True)
        if self._browser and browse(cluster.page):
            print("It opens in your browser.", flush=True)
        plan = self._plan
        await run_all_chapters(
            cluster.kubeconfig, plan.engine, plan.observations, Terminal(), self._pace
        )
        self.is_finished = True
        if self._once:
            print("\nEvery check passed.", flush=True)
            stopping.set()
        else:
            print(_ending(cluster), flush=True)


def _opening(cluster: Ready) -> str:
    return f"""{addresses(cluster)}

The demo does what its commands say. Meanwhile, look around in another terminal:
{_shell_setup(cluster)}
  kubectl get pods -o wide --watch"""


def _shell_setup(cluster: Ready) -> str:
    return f"""  export KUBECONFIG={plain(str(cluster.kubeconfig.absolute()))}
  cd {plain(str(MANIFESTS))}"""


def _ending(cluster: Ready) -> str:
    command = own_command()
    commands = list_commands(
        ("kubectl get pods -o wide", ""),
        ("kubectl apply -f render.yaml", "2,000 pods: look at the page meanwhile"),
        ("kubectl scale deployment web --replicas=300", ""),
        (f"{command} top", "nodes and waiting pods, live"),
        (f"{command} explain without-gpu --config scheduler.yaml", "why it waits, what would help"),
        ("kubectl delete pod urgent", "room for those that it preempted"),
        metrics_command(cluster),
    )
    return f"""
Every check passed, and the cluster is yours. In another terminal:
{_shell_setup(cluster)}
{commands}

Ctrl-C stops the cluster."""


class Terminal:
    """Prints the demo, in colours on a terminal and in plain lines elsewhere."""

    def __init__(self) -> None:
        self._console = plain_console()
        utf8 = self._console.encoding.lower().startswith("utf")
        self._tick, self._bar = ("✓", "│") if utf8 else ("*", "|")

    def show_chapter(self, number: int, total: int, title: str, about: str) -> None:
        self._print(Text(f"\n{number}/{total}  {title}", "bold cyan"))
        self._print(Text(about, "dim"))

    def show_command(self, command: str) -> None:
        self._print_beside(Text("$", "bold green"), Text(command, "bold", no_wrap=True))

    def show_check(self, expected: str) -> None:
        self._print_beside(Text(self._tick, "green"), line(expected))

    def show_quote(self, text: str) -> None:
        self._print_beside(Text(self._bar, "dim"), Text(line(text).plain, "italic"))

    def show_table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self._print(Padding(table(headers, rows), (0, 0, 0, 2 * _INDENT)))

    def show_explanation(self, explanation: Explanation) -> None:
        names = NodeNames(node for each in explanation.suggestions for node in each.nodes)
        parts = (
            line(explanation.headline, "bold"),
            *suggestion_parts(explanation.suggestions, explanation.state, names),
        )
        self._print(Padding(Group(*parts), (0, 0, 0, 2 * _INDENT)))

    @contextmanager
    def show_waiting(self, what: str, so_far: Callable[[], object]) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        spinner = Spinner("line", line(what))

        def draw() -> Padding:
            # Pods that come while they are counted are counted the next time.
            with suppress(RuntimeError):
                found = so_far()
                if isinstance(found, str):
                    spinner.update(text=line(f"{what} ({found})"))
            # The spinner stands where the tick of the check will be.
            return Padding(spinner, (0, 0, 0, _INDENT))

        with Live(console=self._console, transient=True, get_renderable=draw):
            yield

    def _print_beside(self, mark: Text, text: Text) -> None:
        """Prints a mark, and a text that wraps beside it."""
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column()
        grid.add_column(overflow="fold")
        grid.add_row(mark, text)
        self._print(Padding(grid, (0, 0, 0, _INDENT)))

    def _print(self, part: RenderableType) -> None:
        with self._console.capture() as captured:
            self._console.print(part)
        print(trim(captured.get()), flush=True)


def browse(address: str) -> bool:
    """Opens an address in the user's browser; returns False where there is no desktop."""
    if not sys.stdout.isatty() or not _has_desktop():
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if _is_text_browser(browser):
        return False
    # A browser may be slow or broken: the demo does not wait for it.
    threading.Thread(target=browser.open, args=(address,), daemon=True).start()
    return True


def _has_desktop() -> bool:
    return sys.platform in _WITH_DESKTOP or any(os.environ.get(each) for each in _DISPLAYS)


def _is_text_browser(browser: webbrowser.BaseBrowser) -> bool:
    """Whether the browser would take over the terminal and use up the one visit of the address."""
    if isinstance(browser, webbrowser.UnixBrowser):
        return not browser.background
    return isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
        browser, webbrowser.BackgroundBrowser
    )
