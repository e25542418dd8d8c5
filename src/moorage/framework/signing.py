"""What plugins sign of pods, remembered for all pods of which they would read the same.

What a plugin reads to sign a pod is traced, not declared: it signs the first pod of a template
twice, once with a pod that notes what is read. Another pod of that template has the same signature
if all that was read is equal.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from moorage.cluster import Nodes, View
from moorage.cluster.derived import Recent
from moorage.cluster.view import see
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.selector import Selector

from .plugin import UNSIGNABLE, Plugin, Sign
from .plugin_fence import make_plugin_error
from .pod_trace import PodPath, PodReads, TracedPod
from .status import PluginError

# Enough for the templates of a large cluster; beyond it, the oldest are signed again.
_MOST_REMEMBERED = 16_384

# A pod with longer annotations is signed each time: that costs less than to keep them.
_LONGEST_ANNOTATIONS = 4_096

# What is equal for all pods that share a template, namespace, node name and owner.
_SHARED = frozenset(
    ("spec", "namespace", "node_name", "owner", "priority", "requests", "held", "terms")
)

# What follows from the template alone.
_OF_TEMPLATE = frozenset(("spec", "priority", "requests"))

# What follows from the volumes of a template: pods that differ in these share the rest.
_OF_VOLUMES = frozenset(("volumes", "claiming", "migratable", "disks", "named_claims"))
_VOLUME_FACTS = frozenset(("storage", "csi_nodes", "volume_use"))

SIGNING = 'asking plugin "{}" for a signature'


class SigningFailed(Exception):
    """A plugin raised an exception instead of signing."""

    def __init__(self, plugin: str) -> None:
        super().__init__(plugin)
        self.plugin = plugin


class _ReadsMore(BaseException):
    """Ends a trace: what was read may differ between pods that share all that is remembered."""


class _Trace(PodReads):
    """What one plugin reads of one pod, and of the cluster, to sign it."""

    def __init__(self) -> None:
        super().__init__()
        self.reads_more = False
        #: Whether it reads volumes of the template, and the objects behind them.
        self.reads_volumes = self.reads_storage = False
        #: Whether it reads the services and the controller of the pod.
        self.reads_siblings = False
        #: Whether it reads all labels; the keys of others are among the paths.
        self.reads_labels = False

    def note(self, path: PodPath) -> None:
        kind, keyed = path[0] if path else "", len(path) > 1
        if kind == "claims":
            self.reads_volumes = True
            super().note(path)
        elif kind == "spec" and keyed and path[1] in _OF_VOLUMES:
            self.reads_volumes = True
        elif kind == "labels":
            self.reads_labels |= not keyed
            super().note(path)
        elif kind in _SHARED or (kind == "annotations" and keyed):
            super().note(path)
        else:
            self.fail()

    def fail(self) -> None:
        self.reads_more = True
        raise _ReadsMore

    def list_keys(self, texts: str) -> set[str]:
        return {path[1] for path in self.paths if path[0] == texts and len(path) > 1}


class _TracedView:
    """The view of a plugin that signs a traced pod. Without a view, nothing can be read."""

    def __init__(self, view: View | None, trace: _Trace) -> None:
        self._view, self._trace = view, trace

    def __getattr__(self, name: str) -> Any:
        view, trace = self._view, self._trace
        if name == "workloads" and view is not None:
            return _TracedWorkloads(view, trace)
        if name in _VOLUME_FACTS and view is not None:
            trace.reads_storage = True
            return _PlainPods(getattr(view, name))
        # The key of a template has the labels that matter.
        if name in ("labels_that_matter", "labels_version") and view is not None:
            return _PlainPods.wrap(getattr(view, name))
        return trace.fail()

    def __len__(self) -> int:
        self._trace.fail()
        return 0


class _TracedWorkloads:
    def __init__(self, view: View, trace: _Trace) -> None:
        self._view, self._trace = view, trace

    def siblings(self, pod: Any) -> Selector | None:
        self._trace.reads_siblings = True
        return self._view.workloads.siblings(_plain(pod))

    def __getattr__(self, name: str) -> Any:
        return self._trace.fail()


class _PlainPods:
    """Something of the cluster, which gets the pod itself where a plugin passes a traced one."""

    def __init__(self, item: Any) -> None:
        self._item = item

    @staticmethod
    def wrap(found: Any) -> Any:
        return _PlainPods(found) if callable(found) else found

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._item, name)
        return _PlainPods(found) if name == "facts" else self.wrap(found)

    def __call__(self, *arguments: Any) -> Any:
        return self._item(*map(_plain, arguments))


def _plain(item: Any) -> Any:
    return item._pod if type(item) is TracedPod else item


def sign_plainly(plugin: Sign, pod: Pod, nodes: Nodes) -> Hashable:
    """Returns what a plugin signs of a pod. It lets pass what the plugin raises."""
    answer = plugin.sign(pod, see(plugin, nodes))
    hash(answer)
    return answer


def sign(plugin: Sign, pod: Pod, nodes: Nodes) -> Hashable:
    """Returns what a plugin signs of a pod; raises SigningFailed if it cannot."""
    try:
        return sign_plainly(plugin, pod, nodes)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises
        raise SigningFailed(plugin.name) from make_plugin_error(SIGNING, plugin, error)


def sign_to_share(plugin: Sign, pod: Pod, nodes: Nodes) -> Hashable:
    """Returns what a plugin signs of a pod, or UNSIGNABLE if it raises: then nothing is shared."""
    try:
        return sign_plainly(plugin, pod, nodes)
    except Exception:  # noqa: BLE001 - whatever a plugin raises
        return UNSIGNABLE


def _trace(plugin: Sign, pod: Pod, nodes: Nodes) -> tuple[Hashable, _Trace]:
    """Returns what a plugin signs of a pod, and what it reads for that.

    It is asked twice, because it must sign a pod in one way.
    """
    answer, trace = sign_plainly(plugin, pod, nodes), _Trace()
    view = cast(View, _TracedView(see(plugin, nodes), trace))
    try:
        is_same = bool(plugin.sign(cast(Pod, TracedPod(pod, trace)), view) == answer)
    except (_ReadsMore, Exception):  # noqa: BLE001 - what the plugin raises it raises once more
        is_same = False
    if not is_same:
        # Code that cannot handle a traced pod may read anything.
        trace.reads_more = True
        again = sign_plainly(plugin, pod, nodes)
        if again != answer:
            raise PluginError(f"signs one pod in two ways, {answer!r} and {again!r}")
    return answer, trace


def has_no_say(plugin: Plugin, pod: Pod) -> bool:
    """Whether a plugin signs all pods of a template with None, whatever happens.

    Then it has nothing to do with such pods: it neither holds them back nor reserves anything.
    """
    if not isinstance(plugin, Sign):
        return False
    trace = _Trace()
    view = cast(View, _TracedView(None, trace))
    try:
        signed = plugin.sign(cast(Pod, TracedPod(pod, trace)), view)
    except (_ReadsMore, Exception):  # noqa: BLE001 - it is asked about each pod, and fails there
        return False
    return signed is None and all(path[0] in _OF_TEMPLATE for path in trace.paths)


@dataclass(slots=True)
class SignedTemplate:
    """What plugins sign of pods that share all that was read to sign the first of them."""

    #: Per plugin; None at the places in `again`.
    parts: tuple[Hashable, ...]
    #: The places of the plugins that are asked about each such pod.
    again: tuple[int, ...]
    #: Whether these read nothing beyond what is shared but volumes, and neither do the seekers.
    but_volumes: bool
    #: Whether the seekers sign all such pods alike.
    sought_alike: bool
    #: Its identity is part of the key, so that it stays alive.
    spec: PodSpec
    reads_siblings: bool = False
    #: The services and the controller of such pods, and the version of these for which it is known.
    siblings: Selector | None = None
    version: int = 0
    #: What the caller has made of the parts.
    made: Any = None


class SignedTemplates:
    """Signs pods for some plugins. `seekers` are others that may seek remedies for such pods."""

    def __init__(
        self,
        plugins: Sequence[Sign],
        seekers: Sequence[Plugin] = (),
        always: Collection[Sign] = (),
    ) -> None:
        self.plugins = tuple(plugins)
        self._seekers = tuple(seekers)
        #: Those of the plugins that are asked about each pod, whatever they read.
        self._always = always
        # What plugins have read besides the template. It grows, and then keys are other ones.
        self._any_label = False
        self._labels: tuple[str, ...] = ()
        self._annotations: tuple[str, ...] = ()
        self._known: Recent[Hashable, SignedTemplate] = Recent(_MOST_REMEMBERED)
        #: Of which cluster the versions of services and controllers are.
        self._workloads: Any = None

    def find(self, pod: Pod, nodes: Nodes) -> SignedTemplate:
        """Returns what the plugins sign of pods like this one; raises SigningFailed."""
        known = self.peek(pod, nodes)
        return self._sign(pod, nodes) if known is None else known

    def peek(self, pod: Pod, nodes: Nodes) -> SignedTemplate | None:
        """Returns the same if it is known."""
        if pod.status.sizes:
            # Granted resources are part of no template.
            return None
        if nodes.workloads is not self._workloads:
            self._workloads = nodes.workloads
            self._known.clear()
        known = self._known.find(self._key(pod, nodes))
        if known is None or not known.reads_siblings or known.version == nodes.workloads.version:
            return known
        if nodes.workloads.siblings(pod) != known.siblings:
            return None
        known.version = nodes.workloads.version
        return known

    def sign_again(self, known: SignedTemplate, pod: Pod, nodes: Nodes) -> list[Hashable]:
        """Returns what plugins sign that are asked about each pod; raises SigningFailed."""
        return [sign(self.plugins[at], pod, nodes) for at in known.again]

    def origin(self, pod: Pod) -> Hashable:
        """Returns what is read of a pod that events of its own change."""
        return pod.owner, tuple([pod.annotations.get(key) for key in self._annotations])

    def clear(self) -> None:
        """Forgets all signatures, because what they were made from is gone."""
        self._known.clear()

    def sweep(self) -> None:
        """Drops the templates that had no pod lately."""
        self._known.sweep()

    def _key(self, pod: Pod, nodes: Nodes) -> Hashable:
        texts, labels, held = None, pod.labels, pod.annotations
        if labels or held:
            any_label = self._any_label
            read = tuple(labels.items()) if any_label else nodes.labels_that_matter(pod)
            keyed = tuple(map(labels.get, self._labels)) if self._labels else ()
            texts = read, keyed, tuple(map(held.get, self._annotations)) if held else None
        spec = pod.spec
        # Pods with volumes have a template each, and share what follows from the rest of it.
        return id(spec.template), not spec.volumes, pod.namespace, pod.node_name, pod.owner, texts

    def _sign(self, pod: Pod, nodes: Nodes) -> SignedTemplate:
        spec = pod.spec
        # Such a template of a pod's own is not met again.
        if pod.status.sizes or (spec.volumes and spec.template is spec):
            parts = tuple([sign(plugin, pod, nodes) for plugin in self.plugins])
            return SignedTemplate(parts, (), False, False, spec)
        traced = [self._trace(plugin, pod, nodes) for plugin in self.plugins]
        seeking = [
            self._trace(plugin, pod, nodes)[1]
            for plugin in self._seekers
            if isinstance(plugin, Sign)
        ]
        traces = [*(trace for _, trace in traced), *seeking]
        again = tuple(
            at
            for at, (plugin, (_, trace)) in enumerate(zip(self.plugins, traced, strict=True))
            if plugin in self._always or _differs(trace, spec)
        )
        is_sought = len(seeking) == len(self._seekers)
        but_volumes = is_sought and not any(
            trace.reads_more for trace in (*(traced[at][1] for at in again), *seeking)
        )
        known = SignedTemplate(
            tuple(None if at in again else part for at, (part, _) in enumerate(traced)),
            again,
            but_volumes and not any(self.plugins[at] in self._always for at in again),
            is_sought and not any(_differs(trace, spec) for trace in seeking),
            spec.template,
            any(trace.reads_siblings for trace in traces),
        )
        if known.reads_siblings:
            known.siblings = nodes.workloads.siblings(pod)
            known.version = nodes.workloads.version
        self._note(traces)
        held = pod.annotations
        if sum(len(held.get(key, "")) for key in self._annotations) <= _LONGEST_ANNOTATIONS:
            self._known.put(self._key(pod, nodes), known)
        return known

    def _trace(self, plugin: Sign, pod: Pod, nodes: Nodes) -> tuple[Hashable, _Trace]:
        try:
            return _trace(plugin, pod, nodes)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises
            raise SigningFailed(plugin.name) from make_plugin_error(SIGNING, plugin, error)

    def _note(self, traces: Sequence[_Trace]) -> None:
        """Notes what has been read besides the template."""
        self._any_label |= any(trace.reads_labels for trace in traces)
        labels = set(self._labels).union(*(each.list_keys("labels") for each in traces))
        annotations = (each.list_keys("annotations") for each in traces)
        self._labels = tuple(sorted(labels))
        self._annotations = tuple(sorted(set(self._annotations).union(*annotations)))


def _differs(trace: _Trace, spec: PodSpec) -> bool:
    """Whether a plugin has read what may differ between pods that share a template."""
    return trace.reads_more or trace.reads_storage or (trace.reads_volumes and bool(spec.volumes))
