"""Signatures: which pods are alike, as all plugins of a profile sign them together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from moorage.cluster import Nodes, Scope
from moorage.cluster.derived import Recent
from moorage.engine.budget import is_ordinary
from moorage.framework.calls import SIGNING, ask_sign, ask_skips, sign_plainly
from moorage.framework.plugin import (
    TEMPLATE,
    UNSIGNABLE,
    Plugin,
    Sign,
    find_pod_reads,
)
from moorage.framework.plugin_fence import make_plugin_error
from moorage.framework.pod_trace import PodReads
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.selector import Selector

from .relative_scores import is_kept
from .statistics import Unsignable

# Enough for the templates of a large cluster; beyond it, the oldest are signed anew.
_MOST_REMEMBERED = 16_384

# A pod with longer annotations is signed anew each time: that costs less than to keep them.
_LONGEST_ANNOTATIONS = 4_096


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


class _BrokenSign(Exception):
    """A plugin raised an exception instead of signing."""

    def __init__(self, plugin: str) -> None:
        super().__init__(plugin)
        self.plugin = plugin


#: Nothing is asked yet.
NOTHING = Asks(0, 0, {}, {}, {})


@dataclass(slots=True)
class _SignedTemplate:
    """The signature of pods that share all signed parts."""

    asks: Asks | Unsigned
    #: Whether nobody has to be asked about each of them.
    is_whole: bool
    #: Its identity is part of the key, so that it stays alive.
    spec: PodSpec
    #: The services and the controller of such pods, and the version of these for which it is known.
    siblings: Selector | None
    version: int
    #: Whether such pods are signed alike whatever happens, by those who seek remedies as well.
    fail_alike: bool


class Signer:
    """Signs the pods of a profile. Pods that share all signed parts are signed once."""

    def __init__(self, profile: Profile) -> None:
        points = (*profile.pre_filter, *profile.filter, *profile.pre_score)
        plugins = tuple(dict.fromkeys((*points, *(plugin for plugin, _ in profile.score))))
        signers = [(plugin, _signer_of(plugin)) for plugin in plugins]
        signing = tuple(signer for _, signer in signers if signer is not None)
        #: Whom each of them speaks for.
        self._plugins = {signer: plugin for plugin, signer in signers if signer is not None}
        #: The plugins that cannot sign: with any of them, no two pods are known to be identical.
        self.silent = tuple(plugin for plugin, signer in signers if signer is None)
        self._remembered = tuple(plugin for plugin in signing if plugin.signs is not None)
        self._asked = tuple(plugin for plugin in signing if plugin.signs is None)
        #: Those of the remembered that read volumes, and the others.
        self._reading_volumes, self._others = _divide_by_volumes(self._remembered)
        parts = (plugin.signs for plugin in self._remembered if plugin.signs is not None)
        self._parts = reduce(or_, parts, TEMPLATE)
        self._annotations = tuple(sorted(self._parts.annotations))
        #: The post-filters that may read what the others do not.
        self._seekers = tuple(each for each in profile.post_filter if not self._covers(each))
        self._known: Recent[Hashable, _SignedTemplate] = Recent(_MOST_REMEMBERED)
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
        except _BrokenSign as broken:
            return Unsigned(broken.plugin, Unsignable.BROKEN, broken.__cause__)

    def find_alike(self, pod: Pod, nodes: Nodes) -> Hashable | None:
        """Returns what a failed pod shares with pods of its template that fail whenever it does.

        None if nothing is known of others.
        """
        if pod.status.sizes or pod.spec.volumes:
            return None
        texts = self._texts(pod, nodes)
        known = self._known.find((id(pod.spec), pod.namespace, pod.node_name, pod.owner, texts))
        if known is None or not known.fail_alike or not _is_shared(known.asks):
            return None
        return pod.owner, tuple([pod.annotations.get(key) for key in self._annotations])

    def _covers(self, plugin: Plugin) -> bool:
        """Whether a plugin reads of a pod only what is remembered."""
        signs = plugin.signs if isinstance(plugin, Sign) else None
        return signs is not None and signs | self._parts == self._parts

    def parts(self, pod: Pod, nodes: Nodes) -> Mapping[str, Hashable] | Unsigned:
        """Returns what each plugin signs of a pod, by its name."""
        if self.silent:
            return Unsigned(self.silent[0].name, Unsignable.SILENT)
        if not is_ordinary(pod):
            return TOO_MANY_RULES
        found: dict[str, Hashable] = {}
        try:
            for plugin in (*self._remembered, *self._asked):
                found[plugin.name] = part = _ask(plugin, pod, nodes)
                if part is UNSIGNABLE:
                    return Unsigned(plugin.name, Unsignable.UNSIGNABLE)
        except _BrokenSign as broken:
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
        self._known.clear()

    def sweep(self) -> None:
        """Drops the templates that had no pod lately."""
        self._known.sweep()
        self._numbers.sweep()
        self._asks.sweep()

    def _ask_all(self, pod: Pod, nodes: Nodes) -> Asks | Unsigned:
        spec = pod.spec
        # Granted resources are told by no template.
        if pod.status.sizes:
            return self._complete(self._sign_anew(pod, nodes), pod, nodes)
        if spec.volumes:
            return self._sign_with_volumes(pod, nodes)
        key = id(spec), pod.namespace, pod.node_name, pod.owner, self._texts(pod, nodes)
        known = self._find_current(key, pod, nodes)
        if known is not None:
            asks = known.asks
            return asks if known.is_whole else self._complete(asks, pod, nodes)
        asks = self._sign_anew(pod, nodes)
        if asks is not TOO_MANY_RULES and not self._is_long(pod):
            self._known.put(key, self._make_entry(asks, pod, nodes))
        return self._complete(asks, pod, nodes)

    def _sign_with_volumes(self, pod: Pod, nodes: Nodes) -> Asks | Unsigned:
        """Signs volumes anew, because claims change while pods wait; the rest is signed once."""
        if not is_ordinary(pod):
            return TOO_MANY_RULES
        asks = self._sign_but_volumes(pod, nodes)
        if isinstance(asks, Asks):
            asks = self._add(self._reading_volumes, pod, nodes, asks)
        return self._complete(asks, pod, nodes)

    def _sign_but_volumes(self, pod: Pod, nodes: Nodes) -> Asks | Unsigned:
        """Returns what the plugins are asked that do not read volumes."""
        template, texts = pod.spec.template, self._texts(pod, nodes)
        # One part more than for pods without volumes: fewer plugins have signed.
        key = id(template), pod.namespace, pod.node_name, pod.owner, texts, self._others
        known = self._find_current(key, pod, nodes)
        if known is not None:
            return known.asks
        asks = self._add(self._others, pod, nodes, NOTHING)
        if template is not pod.spec and not self._is_long(pod):
            self._known.put(key, self._make_entry(asks, pod, nodes))
        return asks

    def _find_current(self, key: Hashable, pod: Pod, nodes: Nodes) -> _SignedTemplate | None:
        known = self._known.find(key)
        if known is None or known.version == nodes.workloads.version:
            return known
        return known if self._is_current(known, pod, nodes) else None

    def _complete(self, asks: Asks | Unsigned, pod: Pod, nodes: Nodes) -> Asks | Unsigned:
        """Adds the parts of plugins that are asked to sign every pod."""
        if self._asked and isinstance(asks, Asks):
            return self._add(self._asked, pod, nodes, asks)
        return asks

    def _is_current(self, known: _SignedTemplate, pod: Pod, nodes: Nodes) -> bool:
        """Whether services and controllers say the same of such pods as when they were signed."""
        version = nodes.workloads.version
        if not self._parts.siblings:
            return True
        if nodes.workloads.siblings(pod) != known.siblings:
            return False
        known.version = version
        return True

    def _make_entry(self, asks: Asks | Unsigned, pod: Pod, nodes: Nodes) -> _SignedTemplate:
        siblings = nodes.workloads.siblings(pod) if self._parts.siblings else None
        is_whole = all(_skips(plugin, pod) for plugin in self._asked)
        version = nodes.workloads.version
        alike = is_whole and all(_skips(plugin, pod) for plugin in self._seekers)
        return _SignedTemplate(asks, is_whole, pod.spec.template, siblings, version, alike)

    def _texts(self, pod: Pod, nodes: Nodes) -> Hashable:
        """Returns the labels and annotations that may tell pods of one template apart."""
        labels, held = pod.labels, pod.annotations
        if not labels and not held:
            return None
        any_label = self._parts.any_label
        read = tuple(labels.items()) if any_label else nodes.labels_that_matter(pod)
        return read, tuple(map(held.get, self._annotations)) if held else None

    def _is_long(self, pod: Pod) -> bool:
        held = pod.annotations
        return sum(len(held.get(key, "")) for key in self._annotations) > _LONGEST_ANNOTATIONS

    def _sign_anew(self, pod: Pod, nodes: Nodes) -> Asks | Unsigned:
        if not is_ordinary(pod):
            return TOO_MANY_RULES
        return self._add(self._remembered, pod, nodes, NOTHING)

    def _add(self, plugins: Sequence[Sign], pod: Pod, nodes: Nodes, first: Asks) -> Asks | Unsigned:
        """Adds the parts of some plugins."""
        parts = _sign_parts(plugins, pod, nodes)
        if first is not NOTHING and not any(part is not None for part in parts):
            # Nobody adds anything.
            return first
        key = _Parts(first.number, *parts)
        asks = self._asks.get(key)
        if asks is None:
            spoken_for = [self._plugins[each] for each in plugins]
            by_plugin = {**first.parts, **dict(zip(spoken_for, parts, strict=True))}
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


def _divide_by_volumes(signing: Iterable[Sign]) -> tuple[tuple[Sign, ...], tuple[Sign, ...]]:
    """Returns the plugins that sign volumes, and those that do not."""
    reading = tuple(each for each in signing if each.signs is None or each.signs.volumes)
    return reading, tuple(each for each in signing if each not in reading)


def _is_shared(asks: Asks | Unsigned) -> bool:
    return isinstance(asks, Asks) and not asks.alone


def _sign_parts(plugins: Iterable[Sign], pod: Pod, nodes: Nodes) -> list[Hashable]:
    """Returns what each of some plugins signs of a pod."""
    parts: list[Hashable] = []
    for plugin in plugins:
        # As `_ask` does, without its calls: this is done for every pod that is like no other.
        try:
            part = sign_plainly(plugin, pod, nodes)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises
            raise _BrokenSign(plugin.name) from make_plugin_error(SIGNING, plugin, error)
        parts.append(part)
    return parts


def _ask(plugin: Sign, pod: Pod, nodes: Nodes) -> Hashable:
    try:
        return ask_sign(plugin, pod, nodes)
    except Exception as error:
        raise _BrokenSign(plugin.name) from error


def _skips(plugin: Plugin, pod: Pod) -> bool:
    try:
        return ask_skips(plugin, pod)
    except Exception as error:
        raise _BrokenSign(plugin.name) from error
