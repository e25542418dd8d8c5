"""Running the cluster of `mooring up`, and what is told once it is ready."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from typing import Protocol

import uvloop

from mooring.app.observations import Observations
from mooring.app.up import Ready, UpSettings, up
from mooring.engine import Engine
from mooring.objects.coexist import ANNOTATION
from mooring.objects.coexist import DAEMONSET_AND_STATIC_PODS as EXCLUSIVE

from .text import plain

# The token is neither shown nor part of a command, where other users could read it.
_BEARER = "kubectl config view --raw -o jsonpath='Authorization: Bearer {.users[0].user.token}'"


@dataclass(frozen=True)
class Plan:
    """A cluster that is to run, and its scheduler."""

    settings: UpSettings
    engine: Engine
    observations: Observations


class Then(Protocol):
    """What is done beside a cluster that is ready."""

    async def __call__(self, cluster: Ready, stopping: asyncio.Event) -> None: ...


def run(plan: Plan, then: Then) -> None:
    """Runs a cluster until it is stopped by a signal, or by what is done beside it."""

    async def main() -> None:
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)

        async def ready(cluster: Ready) -> None:
            await then(cluster, stopping)

        await up(plan.settings, plan.engine, plan.observations, ready, stopping)

    uvloop.run(main())


class Plain:
    """Says where everything is, and what to try."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    async def __call__(self, cluster: Ready, stopping: asyncio.Event) -> None:
        kubeconfig = plain(str(cluster.kubeconfig))
        print(
            f"""{whereabouts(cluster)}

In another terminal:
  export KUBECONFIG={kubeconfig}
  kubectl get nodes -L topology.kubernetes.io/zone
  kubectl run hello --image=registry.example/hello && kubectl get pods -o wide
  kubectl run alone --image=registry.example/alone --annotations={ANNOTATION}={EXCLUSIVE}
{metrics(cluster) if cluster.endpoints else _to_run_one(kubeconfig)}

More to try is in docs/embedded-cluster.md and examples/embedded. Ctrl-C stops it.""",
            flush=True,
        )
        if self._seconds is not None:
            await asyncio.sleep(self._seconds)
            stopping.set()


def whereabouts(cluster: Ready) -> str:
    """Where the API server and the page are."""
    ready = f"The cluster is ready: {cluster.nodes} nodes, {cluster.server}"
    if not cluster.page:
        return f"{ready}, no scheduler"
    return f"{ready}\nIts page: {cluster.page}\n          (this address lets in one browser, once)"


def metrics(cluster: Ready) -> str:
    """How to read the scheduler's metrics."""
    return f"  {_BEARER} |\n    curl -H @- {cluster.endpoints}/metrics   # the scheduler's"


def _to_run_one(kubeconfig: str) -> str:
    return f"  mooring run --kubeconfig {kubeconfig}   # a scheduler"
