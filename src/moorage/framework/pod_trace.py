"""Traces what a plugin in plain Python reads of pods: a signature for plugins without one.

A plugin that gets a traced pod shows which parts of the pod it reads. All parts that it has ever
read make up the signature: its answers cannot depend on anything else. When it reads a further
part, signatures change for good, and answers under the old ones are not found again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec

from moorage.objects.per_template import once_per_template
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec

T = TypeVar("T")

#: Where a part of a pod is: names of attributes, and for texts the key of a label or annotation.
PodPath = tuple[str, ...]

#: The pod as a whole: then no two are alike.
WHOLE: PodPath = ()

# Attributes that are read by key.
_TEXTS = frozenset(("labels", "annotations"))


class PodReads:
    """The parts of pods that one plugin has read so far. They grow and never become fewer."""

    def __init__(self) -> None:
        self._paths: dict[PodPath, None] = {}

    @property
    def paths(self) -> tuple[PodPath, ...]:
        return tuple(self._paths)

    def note(self, path: PodPath) -> None:
        self._paths.setdefault(path)

    def sign(self, pod: Pod) -> Hashable:
        """Returns all that the plugin reads of a pod.

        The number of parts tells old signatures from new.
        """
        if WHOLE in self._paths:
            return "whole", pod.uid, pod.resource_version
        return len(self._paths), *(_value(pod, path) for path in self._paths)

    def ask(self, pod: Pod, question: Callable[[Pod], T]) -> T:
        """Calls the plugin with a traced pod. If that fails, the plugin gets the pod itself.

        Code that cannot handle a traced pod may have read anything.
        """
        try:
            return question(cast(Pod, TracedPod(pod, self)))
        except Exception:  # noqa: BLE001 - what the plugin itself raises it raises once more
            self.note(WHOLE)
            return question(pod)


class TracedPod:
    """A pod that notes what is read of it."""

    __slots__ = ("_pod", "_reads")

    def __init__(self, pod: Pod, reads: PodReads) -> None:
        object.__setattr__(self, "_pod", pod)
        object.__setattr__(self, "_reads", reads)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # It passes for a pod where somebody checks.
        return Pod

    def __getattr__(self, name: str) -> Any:
        pod, reads = self._pod, self._reads
        value = getattr(pod, name)
        if name in _TEXTS:
            return TracedTexts(value, reads, name)
        if name == "spec":
            return TracedSpec(value, reads)
        # A method may read anything.
        reads.note(WHOLE if callable(value) else (name,))
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"immutable type: 'Pod', attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        self._reads.note(WHOLE)
        return bool(self._pod == (other._pod if type(other) is TracedPod else other))

    def __hash__(self) -> int:
        self._reads.note(WHOLE)
        return hash(self._pod)

    def __repr__(self) -> str:
        self._reads.note(WHOLE)
        return repr(self._pod)


class TracedSpec:
    """The template of a pod, field by field."""

    __slots__ = ("_reads", "_spec")

    def __init__(self, spec: PodSpec, reads: PodReads) -> None:
        self._spec = spec
        self._reads = reads

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return PodSpec

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._spec, name)
        self._reads.note(WHOLE if callable(value) else ("spec", name))
        return value

    def __eq__(self, other: object) -> bool:
        self._reads.note(WHOLE)
        return bool(self._spec == (other._spec if type(other) is TracedSpec else other))

    def __hash__(self) -> int:
        self._reads.note(WHOLE)
        return hash(self._spec)

    def __repr__(self) -> str:
        self._reads.note(WHOLE)
        return repr(self._spec)


class TracedTexts(Mapping[str, str]):
    """Labels or annotations, traced key by key. Iterating reads all of them."""

    __slots__ = ("_name", "_reads", "_texts")

    def __init__(self, texts: Mapping[str, str], reads: PodReads, name: str) -> None:
        self._texts = texts
        self._reads = reads
        self._name = name

    def __getitem__(self, key: str) -> str:
        self._reads.note((self._name, key) if isinstance(key, str) else (self._name,))
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        self._reads.note((self._name,))
        return iter(self._texts)

    def __len__(self) -> int:
        self._reads.note((self._name,))
        return len(self._texts)

    def __repr__(self) -> str:
        self._reads.note((self._name,))
        return repr(self._texts)


def _value(pod: Pod, path: PodPath) -> Hashable:
    if path[0] == "spec" and len(path) > 1:
        return _spec_value(pod.spec, path[1])
    found = getattr(pod, path[0])
    if path[0] in _TEXTS:
        return found.get(path[1]) if len(path) > 1 else frozenset(found.items())
    return freeze_value(found)


def _spec_value(spec: PodSpec, name: str) -> Hashable:
    # Templates are shared by many pods, and their fields are slow to compare.
    known = _known_fields(spec)
    if name not in known:
        known[name] = freeze_value(getattr(spec, name))
    return known[name]


@once_per_template
def _known_fields(spec: PodSpec) -> dict[str, Hashable]:
    return {}


def freeze_value(value: Any) -> Hashable:
    """Returns a hashable value that is equal only for equal values."""
    try:
        hash(value)
    except TypeError:
        pass
    else:
        return cast(Hashable, value)
    if isinstance(value, Mapping):
        return frozenset((key, freeze_value(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(freeze_value(each) for each in value)
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, msgspec.Struct):
        fields = ((name, freeze_value(getattr(value, name))) for name in value.__struct_fields__)
        return type(value).__name__, tuple(fields)
    return _Identity(value)


class _Identity:
    """Represents a value that cannot be compared: it equals itself only."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)
