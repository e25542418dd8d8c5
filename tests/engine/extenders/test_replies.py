"""Answers of extenders: read in any case, refused if they cannot be read."""

from __future__ import annotations

import pytest

from moorage.engine.extender_answers import (
    FilterAnswer,
    NodeVictims,
    PreemptAnswer,
    PrioritizeAnswer,
)
from moorage.engine.extenders.replies import ReplyError, read_binding_error, read_reply


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b"{}", FilterAnswer()),
        (b"null", FilterAnswer()),
        (b'{"NodeNames":null,"Nodes":null}', FilterAnswer()),
        (b'{"NodeNames":["a","b"]}', FilterAnswer(("a", "b"))),
        (b'{"nodenames":["a"],"failedNodes":{"b":"x"}}', FilterAnswer(("a",), failed={"b": "x"})),
        (b'{"NODENAMES":["a"],"nodeNames":["b"]}', FilterAnswer(("b",))),
        (
            b'{"failedAndUnresolvableNodes":{"b":"x"},"error":"no"}',
            FilterAnswer(unresolvable={"b": "x"}, error="no"),
        ),
        (
            b'{"nodes":{"metadata":{},"items":[{"metadata":{"name":"a","uid":"1"},"spec":{}}]}}',
            FilterAnswer(nodes=("a",)),
        ),
        (b'{"Nodes":{"items":null}}', FilterAnswer(nodes=())),
        (b'{"NodeNames":["a"],"other":[{"x":1}]}', FilterAnswer(("a",))),
        (b' {"NodeNames":["a"]}\n{"NodeNames":["b"]} garbage', FilterAnswer(("a",))),
    ],
)
def test_filter(body: bytes, answer: FilterAnswer) -> None:
    assert read_reply("filter", body) == answer


@pytest.mark.parametrize(
    ("body", "hosts", "scores"),
    [
        (b"[]", (), ()),
        (b"null", (), ()),
        (b'[{"Host":"a","Score":3},{"Host":"b","Score":-1}]', ("a", "b"), (3, -1)),
        (b'[{"host":"a","score":3},{"Host":"b"}]', ("a", "b"), (3, 0)),
        (b'[{"HOST":"a","sCore":3},{"host":"b","score":9}]', ("a", "b"), (3, 9)),
    ],
)
def test_prioritize(body: bytes, hosts: tuple[str, ...], scores: tuple[int, ...]) -> None:
    assert read_reply("prioritize", body) == PrioritizeAnswer(hosts, scores)


def test_preempt() -> None:
    body = b"""{"nodeNameToMetaVictims": {
        "a": {"pods": [{"uid": "1"}, {"UID": "2"}], "numPDBViolations": 2}, "b": null}}"""

    assert read_reply("preempt", body) == PreemptAnswer(
        {"a": NodeVictims(("1", "2"), 2), "b": NodeVictims()}
    )


def test_bind() -> None:
    assert read_binding_error(b'{"error":"no"}') == "no"
    assert read_binding_error(b'{"Error":""}') == ""
    assert read_binding_error(b"null") == ""


@pytest.mark.parametrize(
    ("verb", "body", "problem"),
    [
        ("filter", b"", "EOF"),
        ("filter", b" \n", "EOF"),
        ("filter", b'{"NodeNames":["a"', "unexpected EOF"),
        ("filter", b"{not", "invalid character 'n' looking for beginning of object key string"),
        ("filter", b"<html>", "invalid character '<' looking for beginning of value"),
        ("filter", b"[" * 100_000, "the answer is nested too deeply"),
        ("prioritize", b"[NaN]", "json: cannot unmarshal the answer to prioritize: "),
        ("filter", b"[]", "json: cannot unmarshal the answer to filter: "),
        ("filter", b'{"nodeNames":"a"}', "json: cannot unmarshal the answer to filter: "),
        ("preempt", b'{"nodeNameToMetaVictims":{"a":[]}}', "json: cannot unmarshal the answer to "),
        (
            "prioritize",
            b'[{"Host":"a","Score":9223372036854775808}]',
            "json: cannot unmarshal the answer to prioritize: ",
        ),
    ],
)
def test_refusals(verb: str, body: bytes, problem: str) -> None:
    with pytest.raises(ReplyError) as caught:
        read_reply(verb, body)

    assert str(caught.value).startswith(problem)
