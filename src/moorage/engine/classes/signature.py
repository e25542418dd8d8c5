"""Signatures: which pods are alike, as all plugins of a profile sign them together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple

from moorage.cluster import Nodes
from moorage.cluster.derived import Recent
from moorage.engine.budget import is_ordinary
from moorage.framework.calls import SIGNING, ask_sign, ask_skips
from moorage.framework.plugin import (
    TEMPLATE,
    UNSIGNABLE,
    NodeFilter,
    NodeScore,
    Plugin,
    Sign,
)
from moorage.framework.plugin_fence import make_plugin_error
from moorage.framework.pod_trace import PodReads
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.selector import Selector
from moorage.queue.entity import SharedFailure

from .parts import is_asked_anew
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

#: A number that like pods share.
Signature = int | Unsigned


class SharedPart(NamedTuple):
    """What pods share that differ only in what some plugins are asked about each of them."""

    #: It stands for what all other plugins sign.
    number: int
    #: What these plugins sign.
    own: Mapping[Plugin, Hashable]


class _Parts:
    """Parts of a signature, with their hash, because they are long and looked up several times."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, first: Hashable, parts: Iterable[Hashable]) -> None:
        self._parts = first, *parts
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Parts) and self._parts == other._parts


#: It tells the parts that pods share from whole signatures.
_SHARED = "shared"


class _BrokenSign(Exception):
    """A plugin raised an exception instead of signing."""

    def __init__(self, plugin: str) -> None:
        super().__init__(plugin)
        self.plugin = plugin


@dataclass(slots=True)
class _SignedTemplate:
    """The signature of pods that share all signed parts."""

    signature: Signature
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
        #: The plugins that cannot sign: with any of them, no two pods are known to be alike.
        self.silent = tuple(plugin.name for plugin, signer in signers if signer is None)
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
        # A number stands for a signature, which is long and slow to compare.
        self._numbers: Recent[_Parts, int] = Recent(_MOST_REMEMBERED)
        self._given = 0
        #: The remembered plugins that are asked about each pod.
        self._asked_anew = frozenset(
            each for each in self._remembered if is_asked_anew(each, profile)
        )
        #: What pods share, by the number of their signature.
        self._shared: Recent[int, SharedPart] = Recent(_MOST_REMEMBERED)

    def sign(self, pod: Pod, nodes: Nodes) -> Signature:
        """Returns the signature of a pod by all plugins together."""
        if self.silent:
            return Unsigned(self.silent[0], Unsignable.SILENT)
        try:
            return self._sign_with_all(pod, nodes)
        except _BrokenSign as broken:
            return Unsigned(broken.plugin, Unsignable.BROKEN, broken.__cause__)

    def find_alike(self, pod: Pod, nodes: Nodes) -> SharedFailure | None:
        """Returns what a failed pod shares with pods that fail whenever it does.

        They do so at any time, those with claims until something about their claims changes. None
        if nothing is known of others.
        """
        if pod.status.sizes:
            return None
        if pod.spec.volumes:
            return self._find_alike_with_claims(pod, nodes)
        texts = self._texts(pod, nodes)
        known = self._known.find((id(pod.spec), pod.namespace, pod.node_name, pod.owner, texts))
        if known is None or not known.fail_alike or not isinstance(known.signature, int):
            return None
        return SharedFailure(self._find_origin(pod))

    def _find_origin(self, pod: Pod) -> Hashable:
        return pod.owner, tuple([pod.annotations.get(key) for key in self._annotations])

    def _find_alike_with_claims(self, pod: Pod, nodes: Nodes) -> SharedFailure | None:
        """Handles pods that have a template each, because it names their claims."""
        # A volume that a nominated pod shares is told from others by no signature.
        if nodes.nominations.are_there or nodes.storage.things_of(pod) is None:
            return None
        if self.silent or not is_ordinary(pod):
            return None
        try:
            if not all(_skips(plugin, pod) for plugin in (*self._asked, *self._seekers)):
                return None
            # What the others sign follows from the rest of what is shared.
            if isinstance(self._sign_but_volumes(pod, nodes), Unsigned):
                return None
            # No number: what it stands for is given another one when it was not asked for lately.
            signed = _sign_parts(self._reading_volumes, pod, nodes)
        except _BrokenSign:
            return None
        if isinstance(signed, Unsigned):
            return None
        labels, template = tuple(pod.labels.items()), pod.spec.without_volumes
        shared = tuple(signed), template, pod.namespace, labels, self._find_origin(pod)
        return SharedFailure(shared, spans_templates=True)

    def _covers(self, plugin: Plugin) -> bool:
        """Whether a plugin reads of a pod only what is remembered."""
        signs = plugin.signs if isinstance(plugin, Sign) else None
        return signs is not None and signs | self._parts == self._parts

    def parts(self, pod: Pod, nodes: Nodes) -> Mapping[str, Hashable] | Unsigned:
        """Returns what each plugin signs of a pod, by its name."""
        if self.silent:
            return Unsigned(self.silent[0], Unsignable.SILENT)
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

    def find_shared(self, signature: int) -> SharedPart | None:
        """Returns what pods of a signature share with others that are like them only in part.

        None if some plugin is asked to sign each of them, or if none was signed lately.
        """
        return self._shared.find(signature)

    def forget(self) -> None:
        """Forgets all signatures, because what they were made from is gone."""
        self._known.clear()

    def sweep(self) -> None:
        """Drops the templates that had no pod lately."""
        self._known.sweep()
        self._numbers.sweep()
        self._shared.sweep()

    def _sign_with_all(self, pod: Pod, nodes: Nodes) -> Signature:
        spec = pod.spec
        # Granted resources are told by no template.
        if pod.status.sizes:
            return self._complete(self._sign_anew(pod, nodes), pod, nodes)
        if spec.volumes:
            return self._sign_with_volumes(pod, nodes)
        key = id(spec), pod.namespace, pod.node_name, pod.owner, self._texts(pod, nodes)
        known = self._find_current(key, pod, nodes)
        if known is not None:
            signature = known.signature
            return signature if known.is_whole else self._complete(signature, pod, nodes)
        signature = self._sign_anew(pod, nodes)
        if signature is not TOO_MANY_RULES and not self._is_long(pod):
            self._known.put(key, self._make_entry(signature, pod, nodes))
        return self._complete(signature, pod, nodes)

    def _sign_with_volumes(self, pod: Pod, nodes: Nodes) -> Signature:
        """Signs volumes anew, because claims change while pods wait; the rest is signed once."""
        if not is_ordinary(pod):
            return TOO_MANY_RULES
        signature = self._sign_but_volumes(pod, nodes)
        if isinstance(signature, int):
            signature = self._number(self._reading_volumes, pod, nodes, signature)
        return self._complete(signature, pod, nodes)

    def _sign_but_volumes(self, pod: Pod, nodes: Nodes) -> Signature:
        """Returns the signature by the plugins that do not read volumes."""
        template, texts = pod.spec.template, self._texts(pod, nodes)
        # One part more than for pods without volumes: fewer plugins have signed.
        key = id(template), pod.namespace, pod.node_name, pod.owner, texts, self._others
        known = self._find_current(key, pod, nodes)
        if known is not None:
            return known.signature
        signature = self._number(self._others, pod, nodes)
        if template is not pod.spec and not self._is_long(pod):
            self._known.put(key, self._make_entry(signature, pod, nodes))
        return signature

    def _find_current(self, key: Hashable, pod: Pod, nodes: Nodes) -> _SignedTemplate | None:
        known = self._known.find(key)
        if known is None or known.version == nodes.workloads.version:
            return known
        return known if self._is_current(known, pod, nodes) else None

    def _complete(self, signature: Signature, pod: Pod, nodes: Nodes) -> Signature:
        """Adds the signatures of plugins that are asked about every pod."""
        if self._asked and isinstance(signature, int):
            return self._number(self._asked, pod, nodes, signature, divides=False)
        return signature

    def _is_current(self, known: _SignedTemplate, pod: Pod, nodes: Nodes) -> bool:
        """Whether services and controllers say the same of such pods as when they were signed."""
        version = nodes.workloads.version
        if not self._parts.siblings:
            return True
        if nodes.workloads.siblings(pod) != known.siblings:
            return False
        known.version = version
        return True

    def _make_entry(self, signature: Signature, pod: Pod, nodes: Nodes) -> _SignedTemplate:
        siblings = nodes.workloads.siblings(pod) if self._parts.siblings else None
        is_whole = all(_skips(plugin, pod) for plugin in self._asked)
        version = nodes.workloads.version
        alike = is_whole and all(_skips(plugin, pod) for plugin in self._seekers)
        return _SignedTemplate(signature, is_whole, pod.spec.template, siblings, version, alike)

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

    def _sign_anew(self, pod: Pod, nodes: Nodes) -> Signature:
        if not is_ordinary(pod):
            return TOO_MANY_RULES
        return self._number(self._remembered, pod, nodes)

    def _number(
        self,
        plugins: Sequence[Sign],
        pod: Pod,
        nodes: Nodes,
        first: int | None = None,
        *,
        divides: bool = True,
    ) -> Signature:
        """Returns the number of a signature, given the number of its first part.

        With `divides`, what such pods share with others is kept.
        """
        # It is asked for each time, so that it is kept for as long as it is needed.
        shared = self._shared.get(first) if divides and first is not None else None
        parts = _sign_parts(plugins, pod, nodes)
        if isinstance(parts, Unsigned):
            return parts
        if first is not None and not any(part is not None for part in parts):
            # Nobody adds anything.
            return first
        signature = self._give_number(_Parts(first, parts))
        is_known = not divides or self._shared.find(signature) is not None
        if not is_known and (first is None or shared is not None):
            self._shared.put(signature, self._divide(plugins, parts, shared))
        return signature

    def _divide(
        self, plugins: Sequence[Sign], parts: Sequence[Hashable], first: SharedPart | None
    ) -> SharedPart:
        """Returns what pods share with others, and what is their own, given the first part."""
        number, own = (None, {}) if first is None else (first.number, dict(first.own))
        common: list[Hashable] = []
        for plugin, part in zip(plugins, parts, strict=True):
            if plugin in self._asked_anew:
                own[plugin] = part
            else:
                common.append(part)
        return SharedPart(self._give_number(_Parts((_SHARED, plugins, number), common)), own)

    def _give_number(self, key: _Parts) -> int:
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
    if isinstance(plugin, NodeFilter | NodeScore) and plugin.pod_reads is not None:
        return TracedSign(plugin.name, plugin.pod_reads)
    return None


def _divide_by_volumes(signing: Iterable[Sign]) -> tuple[tuple[Sign, ...], tuple[Sign, ...]]:
    """Returns the plugins that sign volumes, and those that do not."""
    reading = tuple(each for each in signing if each.signs is None or each.signs.volumes)
    return reading, tuple(each for each in signing if each not in reading)


def _sign_parts(plugins: Iterable[Sign], pod: Pod, nodes: Nodes) -> list[Hashable] | Unsigned:
    """Returns what each of some plugins signs of a pod."""
    parts: list[Hashable] = []
    for plugin in plugins:
        # As `_ask` does, without its calls: this is done for every pod that is like no other.
        try:
            part = plugin.sign(pod, nodes)
            hash(part)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises
            raise _BrokenSign(plugin.name) from make_plugin_error(SIGNING, plugin, error)
        if part is UNSIGNABLE:
            return Unsigned(plugin.name, Unsignable.UNSIGNABLE)
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
