"""What a sink is told: the differences, all of them, in order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moorage.client.api_errors import ApiError
from moorage.client.mirror import Mirror
from moorage.objects.decode import UNREADABLE, reader
from moorage.objects.kinds import READ_KINDS
from tests.client.sinks import Told, line, page, pod

RAW_OR_NOT = pytest.mark.parametrize("keep_raw", [False, True], ids=["whole", "taken apart"])

BAD_SPEC = {"containers": "none"}


def mirror(sink: Told, *, keep_raw: bool = False) -> Mirror:
    return Mirror("Pod", reader("Pod"), sink, keep_raw=keep_raw)


def listed(mirrored: Mirror, *pages: bytes) -> None:
    mirrored.begin_list()
    for each in pages:
        mirrored.take_page(each)
    mirrored.end_list()


@RAW_OR_NOT
def test_a_second_list_tells_the_differences(keep_raw: bool) -> None:
    sink = Told()
    mirrored = mirror(sink, keep_raw=keep_raw)
    listed(mirrored, page(pod("a", 1), pod("b", 2), go_on="more"), page(pod("c", 3)))
    assert sink.take() == ["+x/a@1", "+x/b@2", "+x/c@3"]

    listed(mirrored, page(pod("a", 1), pod("c", 7), pod("d", 8)))

    assert sink.take() == ["+x/c@7", "+x/d@8", "-x/b@2"]


@RAW_OR_NOT
def test_an_empty_list_removes_all(keep_raw: bool) -> None:
    sink = Told()
    mirrored = mirror(sink, keep_raw=keep_raw)
    listed(mirrored, page(pod("a", 1)))
    sink.take()

    listed(mirrored, b'{"metadata":{"resourceVersion":"9"},"items":null}')

    assert sink.take() == ["-x/a@1"]


@RAW_OR_NOT
def test_lines(keep_raw: bool) -> None:
    sink = Told()
    mirrored = mirror(sink, keep_raw=keep_raw)

    reached = [
        mirrored.take_line(line("ADDED", pod("a", 1))),
        mirrored.take_line(line("MODIFIED", pod("a", 2))),
        mirrored.take_line(line("MODIFIED", pod("a", 2))),
        mirrored.take_line(line("BOOKMARK", {"metadata": {"resourceVersion": "5"}})),
        mirrored.take_line(
            line("BOOKMARK", {"metadata": {"resourceVersion": "6"}, "spec": {"containers": 1}})
        ),
        mirrored.take_line(line("DELETED", pod("a", 7))),
        mirrored.take_line(line("DELETED", pod("never seen", 8))),
        mirrored.take_line(line("SOMETHING NEW", pod("b", 9))),
    ]

    assert sink.take() == ["+x/a@1", "+x/a@2", "-x/a@2"]
    assert reached == ["1", "2", "2", "5", "6", "7", "8", "9"]


@RAW_OR_NOT
@pytest.mark.parametrize("how", ["list", "watch"])
def test_one_of_the_same_name_is_another_object(keep_raw: bool, how: str) -> None:
    sink = Told()
    mirrored = mirror(sink, keep_raw=keep_raw)
    listed(mirrored, page(pod("a", 1, uid="first")))
    sink.take()

    if how == "list":
        listed(mirrored, page(pod("a", 2, uid="second")))
    else:
        mirrored.take_line(line("MODIFIED", pod("a", 2, uid="second")))

    assert sink.take() == ["-x/a@1", "+x/a@2"]


@RAW_OR_NOT
def test_a_malformed_object_is_told_once_per_version_and_the_good_form_stays(
    keep_raw: bool,
) -> None:
    sink = Told()
    mirrored = mirror(sink, keep_raw=keep_raw)
    bad = pod("a", 2, spec=BAD_SPEC)
    listed(mirrored, page(pod("a", 1), pod("b", 1)))
    sink.take()

    assert mirrored.take_line(line("MODIFIED", bad)) == "2"
    listed(mirrored, page(bad, pod("b", 1)))
    assert sink.take() == ["?Pod x/a"]
    mirrored.take_line(line("MODIFIED", pod("a", 3, spec=BAD_SPEC)))
    assert sink.take() == ["?Pod x/a"]
    mirrored.take_line(line("MODIFIED", pod("a", 4)))
    assert sink.take() == ["+x/a@4"]
    mirrored.take_line(line("MODIFIED", pod("a", 5, spec=BAD_SPEC)))
    mirrored.take_line(line("DELETED", pod("a", 6, spec=BAD_SPEC)))

    assert sink.take() == ["?Pod x/a", "-x/a@4"]


def test_what_is_malformed_in_a_list_does_not_hide_the_others() -> None:
    sink = Told()

    listed(mirror(sink), page(pod("a", 1), pod("b", 2, spec=BAD_SPEC), pod("c", 3)))

    assert sink.take() == ["+x/a@1", "?Pod x/b", "+x/c@3"]
    assert "containers" in sink.problems[0]


def test_the_json_as_received_comes_if_wanted() -> None:
    sink = Told()
    mirrored = mirror(sink, keep_raw=True)
    strange = {**pod("a", 1), "unknown": {"kept": [1, 2]}}

    listed(mirrored, page(strange))
    mirrored.take_line(line("MODIFIED", {**strange, **pod("a", 2)}))

    assert [json.loads(bytes(raw)) for raw in sink.raws] == [strange, {**strange, **pod("a", 2)}]


def test_without_wanting_it_no_json_is_kept() -> None:
    sink = Told()
    listed(mirror(sink), page(pod("a", 1)))

    assert sink.raws == [b""]


@RAW_OR_NOT
@pytest.mark.parametrize("kind", ["Pod", "Namespace"])
def test_an_error_is_raised(keep_raw: bool, kind: str) -> None:
    told = {"kind": "Status", "metadata": {}, "status": "Failure", "code": 410, "reason": "Gone"}
    mirrored = Mirror(kind, reader(kind), Told(), keep_raw=keep_raw)

    with pytest.raises(ApiError) as caught:
        mirrored.take_line(line("ERROR", told))

    assert caught.value.is_gone


@pytest.mark.parametrize(
    "garbage",
    [b"{", b"[]", b"\xff\xfe", b'{"type":"ADDED"}', b'{"type":"ADDED","object":7}', b"[" * 100_000],
)
def test_garbage(garbage: bytes) -> None:
    sink = Told()
    with pytest.raises(UNREADABLE):
        mirror(sink).take_line(garbage)
    with pytest.raises(UNREADABLE):
        mirror(sink).take_page(garbage)
    assert sink.take() == []


NAMES = st.sampled_from("abcd")


@given(
    keep_raw=st.booleans(),
    steps=st.lists(
        st.tuples(st.sampled_from(["set", "recreate", "delete"]), NAMES, st.booleans()),
        max_size=30,
    ),
    relists=st.sets(st.integers(0, 30)),
    watched=st.sets(st.integers(0, 30)),
)
def test_however_it_is_told_the_sink_ends_up_with_what_there_is(
    keep_raw: bool, steps: list[tuple[str, str, bool]], relists: set[int], watched: set[int]
) -> None:
    """Changes while nobody watches are made up for by the next list."""
    sink = Told()
    mirrored = mirror(sink, keep_raw=keep_raw)
    there: dict[str, dict[str, Any]] = {}
    in_step = True
    for number, (what, name, fine) in enumerate(steps, start=1):
        lines = change_of(there, what, name, number, BAD_SPEC if not fine else None)
        if in_step and number in watched:
            for text in lines:
                mirrored.take_line(text)
        else:
            in_step = False
        if number in relists:
            listed(mirrored, page(*there.values()))
            in_step = True
    listed(mirrored, page(*there.values()))

    assert set(sink.known) >= {f"x/{name}" for name, each in there.items() if is_good(each)}
    assert set(sink.known) <= {f"x/{name}" for name in there}
    for name, each in there.items():
        if is_good(each):
            assert sink.known[f"x/{name}"] == each["metadata"]["resourceVersion"]


def change_of(
    there: dict[str, dict[str, Any]], what: str, name: str, version: int, spec: Any
) -> list[bytes]:
    """Changes what there is; the lines that a watch would tell of it."""
    old = there.pop(name, None)
    if what == "delete":
        return [line("DELETED", old)] if old else []
    if what == "recreate" or old is None:
        there[name] = pod(name, version, uid=f"{name}{version}", spec=spec)
        gone = [line("DELETED", old)] if old else []
        return [*gone, line("ADDED", there[name])]
    there[name] = pod(name, version, uid=old["metadata"]["uid"], spec=spec)
    return [line("MODIFIED", there[name])]


def is_good(each: dict[str, Any]) -> bool:
    return each["spec"] != BAD_SPEC


@pytest.mark.parametrize("kind", sorted(READ_KINDS))
def test_every_kind_can_be_mirrored(kind: str) -> None:
    sink = Told()
    item = {"metadata": {"name": "n", "namespace": "x", "resourceVersion": "1", "uid": "u"}}

    assert Mirror(kind, reader(kind), sink).take_line(line("ADDED", item)) == "1"

    assert [each[0] for each in sink.take()] == ["+"]
