"""What reuse keeps on a busy cluster, and what it takes when pods are all different.

python -m tools.reuse_load churn      like pods, while controllers and services come and go
python -m tools.reuse_load classes    pods of which no two are alike, one after the other
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import tracemalloc
from collections.abc import Iterator
from time import process_time

import msgspec

from moorage.config import default
from moorage.engine import Engine
from moorage.engine.actions import BindPod
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.events import Applied, Bound, Removed
from moorage.framework.profile import known_plugins
from moorage.objects.meta import OwnerReference
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import ReplicaSet, Service
from moorage.plugins import REGISTRY
from moorage.testing import node, pod

_OWNER = OwnerReference(kind="ReplicaSet", name="web", uid="web", controller=True)
_MIB = 2**20


def make_engine(nodes: int, settings: ClassSettings | None = None) -> Engine:
    """An engine with the default profile and so many nodes in three zones."""
    engine = Engine(default(known_plugins(REGISTRY)), REGISTRY, settings)
    for at in range(nodes):
        zone = {"topology.kubernetes.io/zone": "abc"[at % 3]}
        engine.handle(Applied(node(f"n{at}", labels=zone, cpu=32, memory="128Gi")), 0.0)
    return engine


def schedule(engine: Engine, each: Pod) -> str:
    """The node of a pod, which is bound there; empty if there is none."""
    engine.handle(Applied(each), 0.0)
    for action in engine.step(0.0):
        if isinstance(action, BindPod):
            engine.handle(Bound(action.pod.uid), 0.0)
            return action.node
    return ""


# Like pods, while others come and go


def elsewhere(engine: Engine, namespace: str) -> Iterator[None]:
    """A ReplicaSet and a Service come, and go ten turns later; whose pods are none of ours."""
    at = 0
    while True:
        for kind in (ReplicaSet, Service):
            selector = equality({"app": f"other-{at}", "pod-template-hash": str(at)})
            engine.handle(Applied(kind(namespace=namespace, name=f"r{at}", selector=selector)), 0.0)
            if at >= 10:
                gone = kind(namespace=namespace, name=f"r{at - 10}", selector=None)
                engine.handle(Removed(gone), 0.0)
        at += 1
        yield


class LikePods:
    """Like pods on an engine of their own, and what their decisions cost."""

    def __init__(self, asked: argparse.Namespace, every: int = 0, per_second: float = 0.0) -> None:
        self.engine = make_engine(asked.nodes)
        #: A change of each kind comes per so many pods, or so often in a second of their decisions.
        self._every = every
        self._per_second = per_second
        self._changes = elsewhere(self.engine, asked.namespace)
        if asked.spread:
            ours = equality({"app": "web"})
            service = Service(namespace="default", name="web", selector=ours)
            self.engine.handle(Applied(service), 0.0)
        labels = {"app": "web", "pod-template-hash": "7"}
        self._first = pod("p", labels=labels, cpu="100m", memory="200Mi")
        #: Of processor time, for decisions and for the changes elsewhere.
        self.seconds = 0.0
        self.changing = 0.0
        self.changes = 0
        self.places: list[str] = []

    def place(self, count: int) -> None:
        """Decides so many more."""
        for _ in range(count):
            while self._is_change_due():
                began = process_time()
                next(self._changes)
                self.changing += process_time() - began
                self.changes += 1
            at = len(self.places)
            name = {"name": f"p{at}", "uid": f"default/p{at}"}
            each = msgspec.structs.replace(self._first, owner=_OWNER, **name)
            began = process_time()
            self.places.append(schedule(self.engine, each))
            self.seconds += process_time() - began

    def _is_change_due(self) -> bool:
        if self._every:
            return self.changes * self._every <= len(self.places)
        return self.changes < self._per_second * (self.seconds + self.changing)

    def describe(self, what: str, quiet: LikePods) -> str:
        """The rate of decisions, and what is left of it with the changes elsewhere themselves."""
        reused = self.engine.classes["default-scheduler"].statistics.reused
        rate = len(self.places) / self.seconds
        share, whole = quiet.seconds / self.seconds, quiet.seconds / (self.seconds + self.changing)
        return (
            f"{what}: {rate:.0f} pods/s, {reused} reused, {self.changes} changes of each kind; "
            f"{share:.1%} of the rate without changes, {whole:.1%} with what they take; "
            f"the same places: {self.places == quiet.places}"
        )


def churn(asked: argparse.Namespace) -> int:
    """Compares the rates with and without changes elsewhere, a hundred pods in turn."""
    quiet = LikePods(asked)
    busy = LikePods(asked, per_second=asked.per_second)
    wild = LikePods(asked, every=asked.every)
    gc.collect()
    for _ in range(asked.pods // 100):
        for each in (quiet, busy, wild):
            each.place(100)
    print(quiet.describe("no changes", quiet))
    print(busy.describe(f"{asked.per_second:g} changes of each kind per second", quiet))
    print(wild.describe(f"a change of each kind per {asked.every} pods", quiet))
    same = quiet.places == busy.places == wild.places
    whole = quiet.seconds / (busy.seconds + busy.changing)
    return 0 if whole >= 0.9 and same else 1


# Pods of which no two are alike


def distinct(count: int) -> Iterator[Pod]:
    """Pods that differ in what they ask for, so that each is a class of its own."""
    for at in range(count):
        yield pod(f"p{at}", cpu=f"{1 + at % 400}m", memory=f"{1 + at // 400}Mi")


def _resident() -> float:
    """The most memory that the process took so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def classes(asked: argparse.Namespace) -> int:
    """Follows the memory of many classes, and compares every decision with one without reuse."""
    engine = make_engine(asked.nodes, ClassSettings())
    plain = make_engine(asked.nodes, ClassSettings(False, False)) if asked.compare else None
    differences, largest = 0, 0
    if asked.trace:
        tracemalloc.start()
    for at, each in enumerate(distinct(asked.pods)):
        found = schedule(engine, each)
        engine.handle(Removed(each), 0.0)
        if plain is not None:
            differences += schedule(plain, each) != found
            plain.handle(Removed(each), 0.0)
        largest = max(largest, engine.answers.bytes)
        if (at + 1) % max(1, asked.pods // 10) == 0:
            traced = tracemalloc.get_traced_memory()[0] / _MIB
            kept = engine.answers
            print(
                f"{at + 1} classes: {len(kept)} kept, {kept.bytes / _MIB:.0f} MiB told, "
                f"{traced:.0f} MiB traced, {_resident():.0f} MiB resident, "
                f"{differences} differences",
                flush=True,
            )
    print(f"at most {largest / _MIB:.0f} MiB told; {_resident():.0f} MiB resident at most")
    return 0 if largest <= engine.answers.most_bytes and not differences else 1


def main() -> int:
    """Runs one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("churn")
    one.add_argument("--pods", type=int, default=10_000)
    one.add_argument("--per-second", type=float, default=10.0, help="changes of each kind")
    one.add_argument("--every", type=int, default=10, help="and, harder, one per so many pods")
    one.add_argument("--namespace", default="elsewhere")
    one.add_argument("--spread", action="store_true", help="a service of the pods spreads them")
    one.set_defaults(run=churn)
    other = commands.add_parser("classes")
    other.add_argument("--pods", type=int, default=100_000)
    other.add_argument("--compare", action="store_true", help="with decisions without reuse")
    other.add_argument("--trace", action="store_true", help="all memory, which takes much longer")
    other.set_defaults(run=classes)
    for each in (one, other):
        each.add_argument("--nodes", type=int, default=5_000)
    asked = parser.parse_args()
    return int(asked.run(asked))


if __name__ == "__main__":
    sys.exit(main())
