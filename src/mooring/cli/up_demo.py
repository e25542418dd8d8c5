"""`mooring up --demo`: a story, and then the cluster is the user's."""

from __future__ import annotations

import asyncio
import sys

import typer

from mooring.app.up import Ready
from mooring.demo import MANIFESTS, BrokenPromise, tell

from .browsing import browse
from .telling import Terminal
from .text import plain
from .up_running import Plan, metrics, run, whereabouts

# Time to read a step of the story: about a minute for all of them.
_PACE_SECONDS = 3.0

# Exit code if a promise was broken, or the story that was asked for is not told to its end.
_UNTOLD = 1


def run_demo(plan: Plan, *, once: bool, browser: bool, pace: float | None) -> None:
    """Runs a cluster with the story; a broken promise ends both."""
    if pace is None:
        pace = 0.0 if once else _PACE_SECONDS
    demo = _Demo(plan, once=once, browser=browser, pace=pace)
    try:
        run(plan, demo)
    except BrokenPromise as broken:
        print(
            "The demo ends here, because a promise was broken.\n"
            f"  promised: {plain(broken.promised)}\n"
            f"  seen: {plain(broken.seen)}",
            file=sys.stderr,
        )
        raise typer.Exit(_UNTOLD) from None
    if once and not demo.is_told:
        print("The demo was stopped before its end.", file=sys.stderr)
        raise typer.Exit(_UNTOLD)


class _Demo:
    """Tells the story once the cluster is ready."""

    def __init__(self, plan: Plan, *, once: bool, browser: bool, pace: float) -> None:
        self._plan = plan
        self._once = once
        self._browser = browser
        self._pace = pace
        self.is_told = False

    async def __call__(self, cluster: Ready, stopping: asyncio.Event) -> None:
        print(_opening(cluster), flush=True)
        if self._browser and browse(cluster.page):
            print("It opens in your browser.", flush=True)
        plan = self._plan
        await tell(cluster.kubeconfig, plan.engine, plan.observations, Terminal(), self._pace)
        self.is_told = True
        if self._once:
            print("\nEvery promise was kept.", flush=True)
            stopping.set()
        else:
            print(_ending(cluster), flush=True)


def _opening(cluster: Ready) -> str:
    return f"""{whereabouts(cluster)}

It does what its commands say. Meanwhile, look around in another terminal:
{_way_there(cluster)}
  kubectl get pods -o wide --watch"""


def _way_there(cluster: Ready) -> str:
    return f"""  export KUBECONFIG={plain(str(cluster.kubeconfig))}
  cd {plain(str(MANIFESTS))}"""


def _ending(cluster: Ready) -> str:
    return f"""
Every promise was kept, and the cluster is yours. In another terminal:
{_way_there(cluster)}
  kubectl get pods -o wide
  kubectl apply -f render.yaml                          # and look at the page
  kubectl scale deployment web --replicas=300
  kubectl describe pod without-gpu                      # its event says why it waits
  mooring explain without-gpu --config scheduler.yaml   # and this, what would help
  kubectl delete pod urgent                             # room for those that it preempted
{metrics(cluster)}
Ctrl-C stops it."""
