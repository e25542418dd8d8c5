"""An edit: one change of a pod or the cluster, as data."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from moorage.objects.pod import Pod


class Edit(
    msgspec.Struct,
    frozen=True,
    rename="camel",
    tag_field="edit",
    tag=lambda name: name[0].lower() + name[1:],
):
    """One change. `text` completes "would fit if ..."; `apply` returns the pod after it."""

    @property
    def text(self) -> str:
        raise NotImplementedError

    def apply(self, pod: Pod) -> Pod:
        """Returns the pod after the change; the same pod if the cluster changes instead."""
        return pod


def with_spec(pod: Pod, **fields: object) -> Pod:
    """Returns the pod with other values of these fields of its template."""
    return replace(pod, spec=replace(pod.spec, **fields))
