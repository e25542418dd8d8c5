"""What kubelets are to refuse, where they know a policy: hollow ones do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from moorage.objects.pod import Pod
from moorage.objects.pod_refusal import Admit, PodRefusal

from .plugin import Plugin, Registry


class AdmitPods(Plugin):
    """Says which pods a kubelet refuses that were bound around the scheduler."""

    @classmethod
    @abstractmethod
    def admit(cls, pod: Pod, present: Iterable[Pod]) -> PodRefusal | None:
        """Returns why a pod cannot run beside those that are present; None admits it."""

    @classmethod
    def in_the_way(cls, pod: Pod, present: Iterable[Pod]) -> Iterable[Pod]:
        """Returns which pods must leave a node for a pod that shares it with few or none.

        `moorage fit` shows which evictions would free nodes for it. Priorities do not count.
        """
        return ()


def find_admissions(registry: Registry) -> Mapping[str, Admit]:
    """Returns how kubelets admit pods by the policies that there are, by name."""
    return {
        name: plugin.admit for name, plugin in registry.items() if issubclass(plugin, AdmitPods)
    }
