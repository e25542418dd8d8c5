"""Which pods are alike: the signatures of all plugins of a profile, together."""

from __future__ import annotations

from collections.abc import Hashable

from mooring.cluster import Nodes
from mooring.framework.calls import ask_sign
from mooring.framework.plugin import UNSIGNABLE, Sign
from mooring.framework.profile import Profile
from mooring.objects.pod import Pod

# Enough for the templates of a large cluster; beyond it, all are signed anew once.
_MOST_REMEMBERED = 65_536

_UNKNOWN = -1


class Signer:
    """Signs the pods of a profile. Pods of one template are signed once."""

    def __init__(self, profile: Profile) -> None:
        points = (*profile.pre_filter, *profile.filter, *profile.pre_score)
        decides = (*points, *(plugin for plugin, _ in profile.score))
        plugins = tuple(dict.fromkeys(decides))
        self._signing = tuple(plugin for plugin in plugins if isinstance(plugin, Sign))
        #: The plugins that cannot sign: with any of them, no two pods are known to be alike.
        self.silent = tuple(plugin.name for plugin in plugins if not isinstance(plugin, Sign))
        self._any_label = any(plugin.signs_any_label for plugin in self._signing)
        self._known: dict[Hashable, int | None] = {}
        # A number stands for a signature, which is long and slow to compare.
        self._numbers: dict[Hashable, int] = {}
        self._given = 0
        self._epoch: Hashable = None
        # Keeps the templates alive whose identity is a key.
        self._templates: dict[int, object] = {}

    def sign(self, pod: Pod, nodes: Nodes) -> int | None:
        """A number that like pods share; None if nothing can be said."""
        if self.silent:
            return None
        epoch = nodes.epoch
        if epoch != self._epoch or len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
            self._templates.clear()
            # Numbers go on: what was alike before somebody began to read more need not be now.
            self._given += len(self._numbers)
            self._numbers.clear()
            self._epoch = epoch
        spec = pod.spec
        # Claims change while pods wait, and granted resources are told by no template.
        if spec.volumes or pod.status.sizes:
            return self._signature(pod, nodes)
        key = id(spec), pod.namespace, pod.node_name, pod.owner, self._texts(pod, nodes)
        known = self._known.get(key, _UNKNOWN)
        if known == _UNKNOWN:
            self._templates[id(spec)] = spec
            known = self._known[key] = self._signature(pod, nodes)
        return known

    def _texts(self, pod: Pod, nodes: Nodes) -> Hashable:
        """The labels and annotations that may tell pods of one template apart."""
        if not pod.labels and not pod.annotations:
            return None
        labels = tuple(pod.labels.items()) if self._any_label else nodes.labels_that_matter(pod)
        return labels, tuple(pod.annotations.items())

    def _signature(self, pod: Pod, nodes: Nodes) -> int | None:
        parts = tuple(ask_sign(plugin, pod, nodes) for plugin in self._signing)
        if any(part is UNSIGNABLE for part in parts):
            return None
        if len(self._numbers) > _MOST_REMEMBERED:
            # Pods with volumes have numbers without being known. Like pods that get two numbers
            # are decided twice, no more.
            self._given += len(self._numbers)
            self._numbers.clear()
        return self._numbers.setdefault(parts, self._given + len(self._numbers))
