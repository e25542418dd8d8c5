"""One change of a pod or of the cluster, as data that can be told and applied."""

from __future__ import annotations

import msgspec

from mooring.objects.pod import Pod

replace = msgspec.structs.replace


class Edit(
    msgspec.Struct,
    frozen=True,
    rename="camel",
    tag_field="edit",
    tag=lambda name: name[0].lower() + name[1:],
):
    """One change. `told` completes "would fit if ..."; `applied` is the pod after it."""

    @property
    def told(self) -> str:
        raise NotImplementedError

    def applied(self, pod: Pod) -> Pod:
        """The pod after the change: the same one, where the change is one of the cluster."""
        return pod


def with_spec(pod: Pod, **fields: object) -> Pod:
    return replace(pod, spec=replace(pod.spec, **fields))
