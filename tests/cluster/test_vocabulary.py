"""Vocabularies: codes for the values in use."""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis.strategies as st
from hypothesis import given

from moorage.cluster.labels import ABSENT, Vocabulary


@dataclass(frozen=True)
class Longer:
    """A rule: whether a text is longer than so much; equal rules share a table."""

    than: int

    def __call__(self, text: str) -> int:
        return int(len(text) > self.than)


def test_a_value_keeps_its_code_for_as_long_as_somebody_uses_it() -> None:
    words: Vocabulary[str] = Vocabulary()
    first, again = words.acquire("a"), words.acquire("a")
    words.release(first)

    assert first == again == words.code("a")
    words.release(first)
    assert words.code("a") == ABSENT


def test_codes_are_reused() -> None:
    words: Vocabulary[str] = Vocabulary()
    words.release(words.acquire("a"))

    assert words.acquire("b") == 0
    assert (len(words), words.values, words.in_use()) == (1, ["b"], {"b": 0})


def test_a_rule_is_asked_anew_when_a_code_gets_another_value() -> None:
    words: Vocabulary[str] = Vocabulary()
    code = words.acquire("long")
    assert words.judge(Longer(2))[code] == 1
    words.release(code)
    words.acquire("a")

    assert words.judge(Longer(2))[code] == 0
    assert words.judge(Longer(0))[code] == 1


def test_a_value_is_judged_once_per_rule() -> None:
    words: Vocabulary[str] = Vocabulary()
    asked: list[str] = []

    def rule(text: str) -> int:
        asked.append(text)
        return len(text)

    for text in ("a", "bb", "a"):
        words.acquire(text)
        words.judge(rule)

    assert asked == ["a", "bb"]


def test_the_oldest_rule_makes_room() -> None:
    words: Vocabulary[str] = Vocabulary()
    code = words.acquire("word")

    assert [int(words.judge(Longer(n))[code]) for n in range(600)] == [1] * 4 + [0] * 596
    assert words._judged is not None
    assert len(words._judged) <= 512


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdefghijkl")), max_size=60))
def test_codes_agree_with_a_count_of_uses(steps: list[tuple[bool, str]]) -> None:
    words: Vocabulary[str] = Vocabulary()
    uses: dict[str, int] = {}
    for comes, text in steps:
        if comes:
            words.acquire(text)
            uses[text] = uses.get(text, 0) + 1
        elif uses.get(text):
            words.release(words.code(text))
            uses[text] -= 1
        held = {word for word, count in uses.items() if count}
        assert set(words.in_use()) == held
        assert len(set(words.in_use().values())) == len(held)
        judged = words.judge(ord)
        assert all(judged[words.code(word)] == ord(word) for word in held)


def test_tables_stay_right_when_what_was_given_out_is_forgotten() -> None:
    vocabulary: Vocabulary[str] = Vocabulary()
    first = vocabulary.acquire("a")
    assert vocabulary.judge(len)[first] == 1
    for number in range(5_000):
        vocabulary.release(vocabulary.acquire(f"value {number}"))
    last = vocabulary.acquire("the last one")

    answers = vocabulary.judge(len)

    assert (answers[first], answers[last]) == (1, len("the last one"))
    assert len(list(vocabulary.given_since(0))) <= 2
