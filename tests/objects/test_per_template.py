"""What is kept with a template is found once, for all pods that have it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from moorage.objects.per_template import once_per_template, once_per_template_for
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from tests.builders import pod

NUMBERS: Iterator[int] = count(1)


@once_per_template
def number(spec: PodSpec) -> int:
    return next(NUMBERS)


@once_per_template
def other(spec: PodSpec) -> str:
    return "other"


@once_per_template_for(str.upper)
def owned(one: Pod, owner: str) -> str:
    return f"{next(NUMBERS)} of {owner}"


def test_it_is_found_once_for_all_pods_of_a_template() -> None:
    one, same, unlike = pod("a", cpu=3), pod("b", cpu=3), pod("c", cpu=4)

    assert number(one.spec) == number(same.spec)
    assert number(one.spec) != number(unlike.spec)


def test_two_functions_keep_their_own() -> None:
    one = pod("a", cpu=5)

    assert isinstance(number(one.spec), int)
    assert other(one.spec) == "other"


def test_what_was_found_for_another_owner_is_replaced() -> None:
    one = pod("a", cpu=6)
    first = owned(one, "anna")

    assert owned(pod("b", cpu=6), "ANNA") == first, "the mark tells owners apart"
    assert owned(one, "ben").endswith("of ben")
    assert owned(one, "anna") not in (first, owned(one, "ben"))
