"""Which pods are alike: the signatures of all plugins of a profile, together."""

from __future__ import annotations

from collections.abc import Hashable

from mooring.cluster import Nodes
from mooring.cluster.derived import Recent
from mooring.engine.budget import is_ordinary
from mooring.framework.calls import ask_sign
from mooring.framework.plugin import UNSIGNABLE, Sign
from mooring.framework.profile import Profile
from mooring.objects.pod import Pod, PodSpec

# Enough for the templates of a large cluster; beyond it, the oldest are signed anew.
_MOST_REMEMBERED = 16_384


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
        #: With each number the template whose identity is part of the key, so that it stays alive.
        self._known: Recent[Hashable, tuple[int | None, PodSpec]] = Recent(_MOST_REMEMBERED)
        # A number stands for a signature, which is long and slow to compare.
        self._numbers: Recent[Hashable, int] = Recent(_MOST_REMEMBERED)
        self._given = 0
        self._epoch: Hashable = None

    def sign(self, pod: Pod, nodes: Nodes) -> int | None:
        """A number that like pods share; None if nothing can be said."""
        if self.silent:
            return None
        epoch = nodes.epoch
        if epoch != self._epoch:
            # Numbers go on: what was alike before somebody began to read more need not be now.
            self._known.clear()
            self._numbers.clear()
            self._epoch = epoch
        spec = pod.spec
        # Claims change while pods wait, and granted resources are told by no template.
        if spec.volumes or pod.status.sizes:
            return self._signature(pod, nodes) if is_ordinary(pod) else None
        key = id(spec), pod.namespace, pod.node_name, pod.owner, self._texts(pod, nodes)
        known = self._known.find(key)
        if known is None:
            if not is_ordinary(pod):
                # It costs more to keep such a pod than to look at it again.
                return None
            known = self._signature(pod, nodes), spec
            self._known.put(key, known)
        return known[0]

    def sweep(self) -> None:
        """Drops the templates that had no pod lately."""
        self._known.sweep()
        self._numbers.sweep()

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
        number = self._numbers.get(parts)
        if number is None:
            self._given += 1
            number = self._given
            self._numbers.put(parts, number)
        return number
