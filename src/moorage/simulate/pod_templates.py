"""Pod templates in objects of any kind, found by their shape: a mapping whose spec has containers.

How many pods a template makes is written above it: RayCluster has `replicas` and `numOfHosts` in
each group, JobSet `replicas` above a Job's `parallelism`. Nothing here knows a kind by name, but
kinds of a few API groups are known to make one pod where they say no number. Where the number is a
guess, or pods may be made in a way that has no template, the result says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moorage.documents.errors import path_of

Raw = Mapping[str, Any]
Steps = tuple[str | int, ...]

# Fields that say how many of what is below them there are; those beside each other are multiplied.
_COUNTS = ("replicas", "parallelism", "count", "numOfHosts")
# A pod template, or a group of pods that is led by one of them, as LeaderWorkerSet has it.
_SIZE, _LEADER = "size", "leaderTemplate"
_CLAIMS = "volumeClaimTemplates"

# API groups whose kinds make one pod of a template that says no number, and whose numbers count
# for all templates below them.
_KNOWN_GROUPS = frozenset(
    (
        "apps.kruise.io",
        "argoproj.io",
        "batch.volcano.sh",
        "jobset.x-k8s.io",
        "kubeflow.org",
        "kueue.x-k8s.io",
        "leaderworkerset.x-k8s.io",
        "ray.io",
        "workload.codeflare.dev",
    )
)

# What objects have that make pods, even if no template says which.
_SIGNS = frozenset(("replicas", "instances", "image", "containers", "parallelism"))

_NAMES = ("name", "groupName")
_ENDINGS = re.compile(r"(group|pod|replica)?(template|specs?)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template, how many pods are made of it, and the claims that each of them gets."""

    #: Tells it from the others of its object; empty if there are no others.
    name: str
    #: Where it is written, such as spec.template.
    path: str
    raw: Raw
    count: int
    claims: tuple[Raw, ...] = ()
    #: The number of the first pod.
    first: int = 0
    #: Why there may be more or fewer pods than `count`; empty if there are not.
    doubt: str = ""


def find_templates(raw: Raw, group: str) -> list[PodTemplate]:
    """Returns the pod templates in an object of an API group.

    The spec of the object itself is none: operators have containers there that they add to others.
    """
    found = list(_Search(raw).run())
    shared = Counter(steps for each in found for steps in each.counted)
    names = Counter(each.name for each in found)
    seen: Counter[str] = Counter()
    templates = []
    for each in found:
        seen[each.name] += 1
        name = f"{each.name}-{seen[each.name]}" if names[each.name] > 1 else each.name
        templates.append(
            PodTemplate(
                name if len(found) > 1 else "",
                path_of(each.steps),
                each.template,
                each.count,
                each.claims,
                doubt=each.doubt or ("" if group in _KNOWN_GROUPS else _find_doubt(each, shared)),
            )
        )
    return templates


def has_signs_of_pods(raw: Raw) -> bool:
    """Whether an object seems to make pods, by the names of its fields."""
    pending: list[Any] = [value for key, value in raw.items() if key not in ("metadata", "status")]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            if not _SIGNS.isdisjoint(value) or _requests_something(value):
                return True
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return False


def _requests_something(level: Raw) -> bool:
    resources = level.get("resources")
    return isinstance(resources, Mapping) and not {"requests", "limits"}.isdisjoint(resources)


@dataclass(frozen=True, slots=True)
class _Found:
    """A template and what is known about it from the levels above."""

    steps: Steps = ()
    template: Raw = ()  # type: ignore[assignment]
    name: str = ""
    count: int = 1
    #: The levels that say a number.
    counted: tuple[Steps, ...] = ()
    claims: tuple[Raw, ...] = ()
    doubt: str = ""


def _find_doubt(found: _Found, shared: Counter[Steps]) -> str:
    """Returns what makes the number of pods of a kind doubtful that is not known."""
    if not found.counted:
        return "no field above it says how many pods it makes: it counts as one"
    above = [steps for steps in found.counted if shared[steps] > 1]
    if above:
        return f"{path_of(above[0])} says a number for {shared[above[0]]} templates"
    return ""


class _Search:
    """Walks through an object, and gathers numbers, claims and names on the way down."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    def run(self) -> Iterator[_Found]:
        for key, value in self._raw.items():
            if key not in ("metadata", "status"):
                yield from self._descend(value, _Found((key,)))

    def _descend(self, value: Any, above: _Found) -> Iterator[_Found]:
        if isinstance(value, list):
            for index, each in enumerate(value):
                yield from self._descend(each, _step(above, index))
        if not isinstance(value, Mapping):
            return
        template = _as_template(value, above.steps)
        if template is not None:
            yield replace(_check_images(above, template), template=template)
            return
        here = _take_level(above, value)
        for key, each in value.items():
            below = _step(here, key)
            if _SIZE in value and key.endswith("Template"):
                below = _take_size(below, value, key)
            yield from self._descend(each, below)


def _step(above: _Found, step: str | int) -> _Found:
    name = above.name
    if isinstance(step, str):
        name = _ENDINGS.sub("", step).lower() or name
    return replace(above, steps=(*above.steps, step), name=name)


def _as_template(level: Raw, steps: Steps) -> Raw | None:
    """Returns the level as a pod template; None if it is none."""
    spec = level.get("spec")
    if isinstance(spec, Mapping) and _has_containers(spec):
        return level
    last = str(steps[-1]).lower()
    if last.endswith("podspec") and _has_containers(level):
        return {"spec": level}
    return None


def _has_containers(spec: Raw) -> bool:
    containers = spec.get("containers")
    return (
        isinstance(containers, list)
        and bool(containers)
        and all(isinstance(each, Mapping) for each in containers)
    )


def _check_images(above: _Found, template: Raw) -> _Found:
    """Doubts a template that its controller has to complete."""
    bare = [each for each in template["spec"]["containers"] if not each.get("image")]
    if not bare or above.doubt:
        return above
    return replace(above, doubt="a container has no image: its controller changes the template")


def _take_level(above: _Found, level: Raw) -> _Found:
    """Adds what a level says about the templates below it."""
    count, doubt, counted = above.count, above.doubt, above.counted
    for field, value in _numbers(level):
        counted = (*counted, (*above.steps, field))
        if _is_count(value):
            count *= value
        else:
            doubt = doubt or f"{path_of(counted[-1])} is not a number: one is counted"
    claims = level.get(_CLAIMS)
    name = next((level[key] for key in _NAMES if isinstance(level.get(key), str)), above.name)
    return replace(
        above,
        name=name,
        count=count,
        counted=counted,
        doubt=doubt,
        claims=_mappings(claims) or above.claims,
    )


def _numbers(level: Raw) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a level that say how many there are of what is below."""
    for field in _COUNTS:
        value = level.get(field)
        if value is None:
            continue
        completions = level.get("completions")
        if field == "parallelism" and _is_count(value) and _is_count(completions):
            value = min(value, completions)
        yield field, value


def _take_size(below: _Found, level: Raw, key: str) -> _Found:
    """Counts the pods of a group of that size: one leads it, if it has a template of its own."""
    size = level[_SIZE]
    counted = (*below.counted, (*below.steps[:-1], key))
    if key == _LEADER or not _is_count(size):
        return replace(below, counted=counted)
    workers = max(0, size - (_LEADER in level))
    return replace(below, count=below.count * workers, counted=counted)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _mappings(value: Any) -> tuple[Raw, ...]:
    items: Sequence[Any] = value if isinstance(value, list) else ()
    return tuple(each for each in items if isinstance(each, Mapping))
