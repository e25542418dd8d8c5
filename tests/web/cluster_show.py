"""A cluster that is made up, with pods that come and go, for the page to show.

`python -m tests.web.cluster_show` serves it until it is interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import deque
from dataclasses import dataclass, field
from time import monotonic

import msgspec

from moorage.config import default
from moorage.engine import Engine
from moorage.engine.actions import BindPod
from moorage.framework.profile import known_plugins
from moorage.objects.pod import Pod
from moorage.world import World
from tests.builders import node, pod
from tests.registered import REGISTRY
from tests.web.serving import serving


def _template(name: str, namespace: str, kind: str, **asks: str | int) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}
    return pod(name, namespace=namespace, metadata={"ownerReferences": [owner]}, **asks)


# Kinds of pods: what they ask for. The last one fits nowhere.
TEMPLATES = (
    _template("web", "shop", "StatefulSet", cpu="250m", memory="256Mi"),
    _template("cache", "shop", "StatefulSet", cpu="500m", memory="2Gi"),
    _template("batch", "research", "Job", cpu=2, memory="1Gi"),
    _template("huge", "research", "Job", cpu=900, memory="1Gi"),
)


@dataclass
class Show:
    """An engine with nodes; whatever it decides is done at once."""

    engine: Engine = field(
        default_factory=lambda: Engine(default(known_plugins(REGISTRY)), REGISTRY)
    )
    running: deque[str] = field(default_factory=deque)
    made: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.engine)

    @property
    def pods(self) -> dict[str, Pod]:
        return self.world.pods

    def add_nodes(self, count: int) -> None:
        for at in range(count):
            size = (8, 16, 32)[at % 3]
            item = node(
                f"node-{at}",
                cpu=size,
                memory=f"{4 * size}Gi",
                labels={"topology.kubernetes.io/zone": f"zone-{at % 3}"},
                spec={"unschedulable": at % 97 == 5},
            )
            self.world.apply(item, monotonic())

    def add_pods(self, count: int, template: int | None = None) -> None:
        for _ in range(count):
            self.made += 1
            kind = TEMPLATES[self.made // 50 % 3 if template is None else template]
            name = f"{kind.name}-{self.made}"
            item = msgspec.structs.replace(kind, name=name, uid=f"{kind.namespace}/{name}")
            self.world.apply(item, monotonic())

    def remove_oldest(self, count: int) -> None:
        for _ in range(min(count, len(self.running))):
            self.world.remove(self.pods[self.running.popleft()], monotonic())

    def step(self, budget: int = 64) -> bool:
        """Makes some decisions; False if there was nothing to decide."""
        actions = self.engine.step(monotonic(), budget)
        self.world.perform(actions, monotonic())
        self.running += [each.pod.uid for each in actions if isinstance(each, BindPod)]
        return bool(actions)

    async def churn(self, per_second: int, pods: int) -> None:
        """Pods come; once there are enough, the oldest go."""
        while True:
            began = monotonic()
            self.add_pods(per_second // 10)
            self.remove_oldest(len(self.pods) - pods)
            for _ in range(1 + per_second // 640):
                self.step()
                await asyncio.sleep(0)
            await asyncio.sleep(max(0.0, 0.1 - (monotonic() - began)))


async def show(nodes: int, pods: int, per_second: int) -> None:
    made = Show()
    made.add_nodes(nodes)
    made.add_pods(pods)
    while made.step(1_000):
        pass
    made.add_pods(2_000, template=3)
    async with serving(made.engine) as address:
        print(address, flush=True)  # noqa: T201 - it is what this is run for
        await made.churn(per_second, pods)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--per-second", type=int, default=1_000)
    given = parser.parse_args()
    asyncio.run(show(given.nodes, given.pods, given.per_second))


if __name__ == "__main__":
    main()
