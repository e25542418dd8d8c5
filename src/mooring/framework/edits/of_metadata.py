"""Edits of a pod's labels and annotations."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.objects.pod import Pod

from .edit import Edit, replace


class SetLabel(Edit, frozen=True):
    """The pod has another value for a label; None takes it off."""

    key: str
    value: str | None

    @property
    def told(self) -> str:
        if self.value is None:
            return f"it had no label {self.key}"
        return f"its label {self.key} were {self.value}"

    def applied(self, pod: Pod) -> Pod:
        return replace(pod, labels=_put(pod.labels, self.key, self.value))


class SetAnnotation(Edit, frozen=True):
    """The pod has another value for an annotation; None takes it off."""

    key: str
    value: str | None

    @property
    def told(self) -> str:
        if self.value is None:
            return f"it had no annotation {self.key}"
        return f"its annotation {self.key} were {self.value}"

    def applied(self, pod: Pod) -> Pod:
        return replace(pod, annotations=_put(pod.annotations, self.key, self.value))


def _put(held: Mapping[str, str], key: str, value: str | None) -> dict[str, str]:
    kept = {each: text for each, text in held.items() if each != key}
    return kept if value is None else {**kept, key: value}
