"""Keeps with a template what follows from it, typed: one entry per function that is decorated.

A template is one object for all pods that have it, so what is found out about one pod is known for
all of them. Properties of `PodSpec` itself are `template_property` and `lazy_property`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from .pod import Pod
from .pod_spec import PodSpec

T = TypeVar("T")
Owner = TypeVar("Owner")


def once_per_template(find: Callable[[PodSpec], T]) -> Callable[[PodSpec], T]:
    """Keeps what a function finds out about a template, as long as that exists."""
    key = _make_key(find)

    @wraps(find)
    def find_once(spec: PodSpec, /) -> T:
        found: T
        try:
            # Several times for every pod.
            found = spec.__dict__[key]
        except KeyError:
            found = spec.__dict__[key] = find(spec)
        return found

    return find_once


def once_per_template_for(
    mark: Callable[[Owner], object],
) -> Callable[[Callable[[Pod, Owner], T]], Callable[[Pod, Owner], T]]:
    """Keeps what a function finds out about a pod's template for an owner, such as a profile.

    What was found for another owner is replaced. `mark` returns what tells owners apart and is kept
    instead of them: templates are not searched for cycles, so an owner would never be freed.
    """

    def decorate(find: Callable[[Pod, Owner], T]) -> Callable[[Pod, Owner], T]:
        key = _make_key(find)

        @wraps(find)
        def find_once(pod: Pod, owner: Owner, /) -> T:
            kept, marked = pod.spec.__dict__, mark(owner)
            known: tuple[object, T] | None = kept.get(key)
            if known is None or known[0] != marked:
                known = kept[key] = marked, find(pod, owner)
            return known[1]

        return find_once

    return decorate


def _make_key(find: Callable[..., object]) -> str:
    return f"{find.__module__}.{find.__qualname__}"
