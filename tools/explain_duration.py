"""How long decisions wait for an explanation: `python -m tools.explain_duration [NODES]`.

CPU time of the first and second question about each pod, of all steps and of the longest one,
over nodes of five shapes, a fifth of them tainted, with ten pods on each.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from time import process_time

from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.engine.explain import explain_in_steps
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.explain.building import engine

# In cores.
SHAPES = (4, 8, 16, 32, 64)
PODS_PER_NODE = 10
TAINTS = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]


def objects(count: int) -> Iterator[Object]:
    """The nodes, each with pods that leave a fifth of it free or less."""
    chance = random.Random(1)
    for number in range(count):
        cores = SHAPES[number % len(SHAPES)]
        name = f"node-{number}"
        yield node(name, cpu=cores, spec={"taints": TAINTS} if cores == 32 else {})
        for at in range(PODS_PER_NODE):
            share = chance.uniform(0.08, 0.1)
            labels = {"app": f"app-{at % 7}"}
            cpu = f"{int(1000 * cores * share)}m"
            yield pod(f"{name}-{at}", node=name, labels=labels, cpu=cpu)


def asked() -> Iterator[Pod]:
    """Pods that are in for different answers."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "app-1"}},
    }
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    yield pod("fits", cpu="100m")
    yield pod("large", cpu=20)
    yield pod("selects", cpu=1, spec={"nodeSelector": {"disk": "ssd"}})
    yield pod("apart", cpu=1, spec={"affinity": {"podAntiAffinity": apart}})
    yield pod("important", cpu=20, spec={"priority": 500})


def timed(there: Engine, wanted: Pod) -> tuple[float, float]:
    """Milliseconds of all steps, and of the longest."""
    steps, spent = explain_in_steps(there.decider, wanted), []
    is_over = False
    while not is_over:
        began = process_time()
        is_over = next(steps, "over") == "over"
        spent.append(1000 * (process_time() - began))
    return sum(spent), max(spent)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    there = engine()
    for item in objects(count):
        there.handle(Applied(item), 0.0)
    pods = count * PODS_PER_NODE
    sys.stdout.write(f"{count} nodes, {pods} pods; milliseconds: all, longest step, and again\n")
    for wanted in asked():
        figures = (*timed(there, wanted), *timed(there, wanted))
        sys.stdout.write(f"{wanted.name:12}{''.join(f'{each:8.1f}' for each in figures)}\n")


if __name__ == "__main__":
    main()
