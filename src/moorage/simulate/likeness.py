"""Finds which pods could share answers, and which plugins prevent it for the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.cluster import Nodes
from moorage.cluster.view import see
from moorage.engine import Engine
from moorage.engine.classes.signature import Signer, Unsigned
from moorage.engine.explain.explanation import ExplanationPart
from moorage.framework.plugin import NodeFilter, NodeScore, Plugin
from moorage.framework.pod_trace import PodReads
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod
from moorage.record.format import LAST_APPLIED
from moorage.world import Scene, World

# Fields of a pod that never keep it from being like another.
_OWN = frozenset(
    ("name", "uid", "created", "resource_version", "generation", "status", "node_name")
)


class TellingPlugin(ExplanationPart, frozen=True):
    """A plugin without which more pods would be alike, and what it reads in most of them."""

    plugin: str
    count: int
    percent: int
    #: What differs from a pod that they would be like: fields of the spec, labels, annotations.
    fields: tuple[str, ...]


class UnsigningPlugin(ExplanationPart, frozen=True):
    """A plugin that does not sign some pods, so that these are like no other."""

    plugin: str
    reason: str
    count: int
    percent: int


class Likeness(ExplanationPart, frozen=True):
    """How many pods of a profile share a class, and why the others do not."""

    profile: str
    pods: int
    classes: int
    #: Those that are like at least one other.
    alike: int
    percent: int
    #: Largest first; a pod may be counted with several plugins.
    apart: tuple[TellingPlugin, ...]
    unsigned: tuple[UnsigningPlugin, ...]


def load_pods(engine: Engine, objects: Iterable[Any]) -> list[Pod]:
    """Puts objects into an engine; returns all its pods, also running ones."""
    scene, world = Scene.of(objects), World(engine)
    for item in (*scene.around, *scene.nodes, *scene.running):
        world.apply(item, 0.0)
    return [*(pod for pod in scene.running if isinstance(pod, Pod)), *scene.waiting]


def analyse(engine: Engine, pods: Iterable[Pod]) -> tuple[Likeness, ...]:
    """Compares pods as if they all waited, profile by profile.

    The result does not depend on whether answers are reused or a feature gate is on.
    """
    by_profile: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.spec.scheduler_name in engine.profiles:
            waiting = msgspec.structs.replace(pod, node_name="") if pod.node_name else pod
            by_profile[pod.spec.scheduler_name].append(waiting)
    nodes = engine.cluster.nodes
    for name, found in by_profile.items():
        trace_reads(engine.profiles[name], nodes, found)
    return tuple(
        _Comparison(Signer(engine.profiles[name]), nodes, name).compare(found)
        for name, found in sorted(by_profile.items())
    )


def trace_reads(profile: Profile, nodes: Nodes, pods: Iterable[Pod]) -> None:
    """Asks plugins that are signed by what they read, as if each pod were decided.

    A pod that is signed like an earlier one is skipped: the plugin would read the same of it.
    """
    plugins = dict.fromkeys((*profile.filter, *(plugin for plugin, _ in profile.score)))
    traced = [(plugin, reads) for plugin in plugins if (reads := _reads_of(plugin)) is not None]
    asked: set[tuple[str, Hashable]] = set()
    for pod in pods if traced else ():
        for plugin, reads in traced:
            # What the plugin raises, and a signature that cannot be compared, are reported later.
            with suppress(Exception):
                if (plugin.name, reads.sign(pod)) not in asked:
                    _ask(plugin, pod, nodes)
                    asked.add((plugin.name, reads.sign(pod)))


def _reads_of(plugin: Plugin) -> PodReads | None:
    return plugin.pod_reads if isinstance(plugin, NodeFilter | NodeScore) else None


def _ask(plugin: Plugin, pod: Pod, nodes: Nodes) -> None:
    if isinstance(plugin, NodeFilter):
        plugin.filter(pod, see(plugin, nodes), nodes.rows)
    if isinstance(plugin, NodeScore):
        plugin.score(pod, see(plugin, nodes), nodes.rows)


@dataclass(frozen=True, slots=True)
class _Comparison:
    signer: Signer
    nodes: Nodes
    profile: str

    def compare(self, pods: list[Pod]) -> Likeness:
        signed: list[tuple[Pod, Mapping[str, Hashable]]] = []
        unsigned: Counter[tuple[str, str]] = Counter()
        for pod in pods:
            parts = self.signer.parts(pod, self.nodes)
            if isinstance(parts, Unsigned):
                unsigned[parts.plugin or "-", parts.why or "too many rules"] += 1
            else:
                signed.append((pod, parts))
        classes = Counter(tuple(parts.values()) for _, parts in signed)
        alike = sum(count for count in classes.values() if count > 1)
        alone = [each for each in signed if classes[tuple(each[1].values())] == 1]
        total = max(len(pods), 1)
        return Likeness(
            self.profile,
            len(pods),
            len(classes),
            alike,
            100 * alike // total,
            tuple(self._apart(signed, alone, total)),
            tuple(
                UnsigningPlugin(plugin, str(why), count, 100 * count // total)
                for (plugin, why), count in unsigned.most_common()
            ),
        )

    def _apart(
        self,
        signed: list[tuple[Pod, Mapping[str, Hashable]]],
        alone: list[tuple[Pod, Mapping[str, Hashable]]],
        total: int,
    ) -> Iterator[TellingPlugin]:
        """Returns for each plugin the pods that would be like another one without it."""
        found = []
        for plugin in signed[0][1] if alone else ():
            likely: dict[Hashable, Pod] = {}
            counts: Counter[Hashable] = Counter()
            for pod, parts in signed:
                key = _without(parts, plugin)
                counts[key] += 1
                likely.setdefault(key, pod)
            fields: Counter[str] = Counter()
            held = 0
            for pod, parts in alone:
                key = _without(parts, plugin)
                if counts[key] > 1:
                    held += 1
                    fields.update(_differences(pod, likely[key]))
            if held:
                most = tuple(name for name, _ in fields.most_common(3))
                found.append(TellingPlugin(plugin, held, 100 * held // total, most))
        yield from sorted(found, key=lambda each: -each.count)


def _without(parts: Mapping[str, Hashable], plugin: str) -> Hashable:
    return tuple(part for name, part in parts.items() if name != plugin)


def _differences(one: Pod, other: Pod) -> Iterator[str]:
    """Returns the fields in which two pods differ, as users know them."""
    for name in ("labels", "annotations"):
        ours, theirs = getattr(one, name), getattr(other, name)
        for key in sorted((ours.keys() | theirs.keys()) - {LAST_APPLIED}):
            if ours.get(key) != theirs.get(key):
                yield f"{name.removesuffix('s')} {key}"
    for field in one.spec.__struct_fields__:
        if getattr(one.spec, field) != getattr(other.spec, field):
            yield f"spec.{field}"
    for field in set(one.__struct_fields__) - _OWN - {"labels", "annotations", "spec"}:
        if getattr(one, field) != getattr(other, field):
            yield field
