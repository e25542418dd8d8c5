"""Signatures: which pods are alike, as all plugins of a profile sign them together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from moorage.cluster import Nodes, Scope
from moorage.cluster.derived import Recent
from moorage.engine.budget import is_ordinary
from moorage.framework.plugin import (
    UNSIGNABLE,
    Plugin,
    Sign,
    find_pod_reads,
)
from moorage.framework.pod_trace import PodReads
from moorage.framework.profile import Profile
from moorage.framework.signing import SignedTemplates, SigningFailed, sign
from moorage.objects.pod import Pod

from .relative_scores import is_kept
from .statistics import Unsignable

# Enough for the templates of a large cluster; beyond it, the oldest are signed anew.
_MOST_REMEMBERED = 16_384


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A pod that is not known to be like any other, and the plugin that is the reason."""

    plugin: str = ""
    why: Unsignable | None = None
    #: What the plugin raised.
    error: BaseException | None = None


#: A pod with too many rules, which costs less to look at again than to keep.
TOO_MANY_RULES = Unsigned()


class Asks:
    """What plugins are asked about a pod. Pods about which all are asked the same are identical."""

    __slots__ = ("alone", "number", "own", "parts", "shared")

    def __init__(
        self,
        number: int,
        shared: int,
        parts: Mapping[Plugin, Hashable],
        own: Mapping[Plugin, Hashable],
        alone: Mapping[Plugin, Unsignable],
    ) -> None:
        #: It stands for all parts.
        self.number = number
        #: It stands for the parts of plugins whose answers are summed for a class.
        self.shared = shared
        self.parts = parts
        #: The parts of the others.
        self.own = own
        #: Those of them that share nothing about such pods, and why.
        self.alone = alone

    def for_one_pod(self) -> Asks:
        """Returns the same with parts that no other pod has for plugins that share nothing."""
        if not self.alone:
            return self
        own = {**self.own, **{plugin: object() for plugin in self.alone}}
        return Asks(self.number, self.shared, {**self.parts, **own}, own, self.alone)


class _Parts:
    """Parts of a signature, with their hash, because they are long and looked up several times."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, *parts: Hashable) -> None:
        self._parts = parts
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Parts) and self._parts == other._parts


class Signer:
    """Signs the pods of a profile. Pods that share all signed parts are signed once."""

    def __init__(self, profile: Profile) -> None:
        points = (*profile.pre_filter, *profile.filter, *profile.pre_score)
        plugins = tuple(dict.fromkeys((*points, *(plugin for plugin, _ in profile.score))))
        signers = [(plugin, _signer_of(plugin)) for plugin in plugins]
        signing = tuple(signer for _, signer in signers if signer is not None)
        #: The plugins that cannot sign: with any of them, no two pods are known to be identical.
        self.silent = tuple(plugin for plugin, signer in signers if signer is None)
        seekers = tuple(each for each in profile.post_filter if each not in plugins)
        #: A plugin whose parts grow is asked about each pod.
        growing = tuple(each for each in signing if isinstance(each, TracedSign))
        self._templates = SignedTemplates(signing, seekers, growing)
        #: Whom the signing plugins speak for.
        self._spoken_for = tuple(plugin for plugin, signer in signers if signer is not None)
        # A number stands for parts, which are long and slow to compare.
        self._numbers: Recent[_Parts, int] = Recent(_MOST_REMEMBERED)
        self._given = 0
        self._asks: Recent[_Parts, Asks] = Recent(_MOST_REMEMBERED)
        #: The plugins whose answers are not summed.
        self._apart = frozenset(each for each in plugins if _is_apart(each, profile))

    def sign(self, pod: Pod, nodes: Nodes) -> int | Unsigned:
        """Returns a number that identical pods share."""
        asks = self.ask(pod, nodes)
        if isinstance(asks, Unsigned):
            return asks
        for plugin, why in asks.alone.items():
            return Unsigned(plugin.name, why)
        return asks.number

    def ask(self, pod: Pod, nodes: Nodes) -> Asks | Unsigned:
        """Returns what all plugins are asked about a pod."""
        try:
            asks = self._ask_all(pod, nodes)
            return asks if isinstance(asks, Unsigned) else asks.for_one_pod()
        except SigningFailed as broken:
            return Unsigned(broken.plugin, Unsignable.BROKEN, broken.__cause__)

    def find_alike(self, pod: Pod, nodes: Nodes) -> Hashable | None:
        """Returns what a failed pod shares with pods of its template that fail whenever it does.

        None if nothing is known of others.
        """
        if pod.status.sizes or pod.spec.volumes:
            return None
        known = self._templates.peek(pod, nodes)
        if known is None or known.again or not known.sought_alike or not _is_shared(known.made):
            return None
        return self._templates.origin(pod)

    def parts(self, pod: Pod, nodes: Nodes) -> Mapping[str, Hashable] | Unsigned:
        """Returns what each plugin signs of a pod, by its name."""
        if self.silent:
            return Unsigned(self.silent[0].name, Unsignable.SILENT)
        if not is_ordinary(pod):
            return TOO_MANY_RULES
        found: dict[str, Hashable] = {}
        try:
            for plugin in self._templates.plugins:
                found[plugin.name] = part = sign(plugin, pod, nodes)
                if part is UNSIGNABLE:
                    return Unsigned(plugin.name, Unsignable.UNSIGNABLE)
        except SigningFailed as broken:
            return Unsigned(broken.plugin, Unsignable.BROKEN, broken.__cause__)
        return found

    def differing(self, one: Pod, other: Pod, nodes: Nodes) -> tuple[str, ...]:
        """Returns the plugins that tell two pods apart."""
        ours, theirs = self.parts(one, nodes), self.parts(other, nodes)
        if isinstance(ours, Unsigned) or isinstance(theirs, Unsigned):
            return ()
        return tuple(name for name, part in ours.items() if part != theirs[name])

    def forget(self) -> None:
        """Forgets all signatures, because what they were made from is gone."""
        self._templates.clear()

    def sweep(self) -> None:
        """Drops the templates that had no pod lately."""
        self._templates.sweep()
        self._numbers.sweep()
        self._asks.sweep()

    def _ask_all(self, pod: Pod, nodes: Nodes) -> Asks | Unsigned:
        known = self._templates.peek(pod, nodes)
        # Volumes are not part of what is shared, and are rules as well.
        if (known is None or pod.spec.volumes) and not is_ordinary(pod):
            return TOO_MANY_RULES
        if known is None:
            known = self._templates.find(pod, nodes)
        if known.made is None:
            known.made = self._add((), known.parts, {})
        first: Asks = known.made
        if not known.again:
            return first
        parts = self._templates.sign_again(known, pod, nodes)
        if not any(part is not None for part in parts):
            # Nobody adds anything.
            return first
        return self._add((first.number, known.again), tuple(parts), first.parts)

    def _add(
        self,
        before: tuple[Hashable, ...],
        parts: tuple[Hashable, ...],
        others: Mapping[Plugin, Hashable],
    ) -> Asks:
        """Returns the parts of the plugins that are asked about each pod, added to the others."""
        key = _Parts(*before, *parts)
        asks = self._asks.get(key)
        if asks is None:
            places = before[1] if before else range(len(parts))
            spoken_for = [self._spoken_for[at] for at in cast(Iterable[int], places)]
            by_plugin = {**others, **dict(zip(spoken_for, parts, strict=True))}
            asks = self._make(self._number(key), by_plugin)
            self._asks.put(key, asks)
        return asks

    def _make(self, number: int, parts: Mapping[Plugin, Hashable]) -> Asks:
        alone = dict.fromkeys(self.silent, Unsignable.SILENT)
        for plugin, part in parts.items():
            if part is UNSIGNABLE:
                alone[plugin] = Unsignable.UNSIGNABLE
        own = {plugin: part for plugin, part in parts.items() if plugin in self._apart}
        return Asks(number, self._find_shared(parts), parts, own, alone)

    def _find_shared(self, parts: Mapping[Plugin, Hashable]) -> int:
        # Who shares nothing about a pod is part of this, too.
        shared = (
            (plugin, part)
            for plugin, part in parts.items()
            if part is not None and plugin not in self._apart
        )
        return self._number(_Parts(*shared))

    def _number(self, key: _Parts) -> int:
        """Returns the number that stands for some parts."""
        number = self._numbers.get(key)
        if number is None:
            self._given += 1
            number = self._given
            self._numbers.put(key, number)
        return number


class TracedSign(Sign):
    """Signs for a plugin in plain Python by what it has read of pods."""

    def __init__(self, name: str, reads: PodReads) -> None:
        # It speaks for one plugin.
        self.name = name  # type: ignore[misc]
        self._reads = reads

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return self._reads.sign(pod)


def _signer_of(plugin: Plugin) -> Sign | None:
    if isinstance(plugin, Sign):
        return plugin
    reads = find_pod_reads(plugin)
    return None if reads is None else TracedSign(plugin.name, reads)


def _is_apart(plugin: Plugin, profile: Profile) -> bool:
    """Returns whether all answers of a plugin depend on other rows, so that none is summed."""
    filters, scores = plugin in profile.filter, [each for each, _ in profile.score]
    if not filters and (plugin in profile.pre_filter or plugin not in scores):
        return False
    if filters and plugin.scope is Scope.ROW:
        return False
    return not any(each is plugin and is_kept(each) for each in scores)


def _is_shared(asks: Asks | None) -> bool:
    return isinstance(asks, Asks) and not asks.alone
