"""The list of mutations fits the code, and operations on syntax trees do what they say."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tools import mutations
from tools.mutations import MUTATIONS, ROOT, Mutation, read_list
from tools.syntax import Change, Unfit

SOURCE = """
_KINDS: Final = (A, B)

class Cache:
    def find(self, key):
        # A comment.
        if key is None or self.broken:
            self.renew()
            return 0
        self.renew()
        return [each for each in make(key, *self.more, last=3)
                if each & ~key]
"""


@cache
def unparse(path: str) -> str:
    return ast.unparse(ast.parse((ROOT / path).read_text()))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_each_mutation_fits_the_code(mutation: Mutation) -> None:
    assert mutation.apply() != unparse(mutation.path)
    assert mutation.tests
    assert all((ROOT / each).exists() for each in mutation.tests)


def test_there_are_enough_and_each_has_a_name() -> None:
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS) >= 151


@pytest.mark.parametrize(
    ("scope", "change", "before", "after"),
    [
        ("_KINDS", "drop B", "(A, B)", "(A,)"),
        ("Cache.find", "drop self.broken", "key is None or self.broken", "key is None"),
        ("Cache.find", "never key is None or self.broken", "key is None or self.broken", "False"),
        ("Cache", "always each & ~key", "if each & ~key", "if True"),
        ("Cache.find", "drop each & ~key", " if each & ~key", ""),
        ("Cache.find", "drop ~key", "each & ~key", "each"),
        ("Cache.find", "drop self.more", ", *self.more", ""),
        ("Cache.find", "drop 3", ", last=3", ""),
        ("Cache.find", "replace 3 by 4 + a of make(key, *self.more, last=3)", "3", "4 + a"),
        (
            "Cache.find",
            "drop self.renew() of if key is None or self.broken:",
            "            self.renew()\n            return",
            "            pass\n            return",
        ),
        ("Cache.find", "replace return 0 by raise Gone", "return 0", "raise Gone"),
    ],
)
def test_an_operation_changes_one_place(scope: str, change: str, before: str, after: str) -> None:
    whole = ast.unparse(ast.parse(SOURCE))
    assert whole.count(before) == 1

    assert Change(scope, change).apply(SOURCE) == whole.replace(before, after)


def test_a_compound_statement_is_dropped_with_its_body() -> None:
    changed = Change("Cache.find", "drop if key is None or self.broken:").apply(SOURCE)

    assert changed.count("self.renew()") == 1
    assert "return 0" not in changed


@pytest.mark.parametrize(
    ("scope", "change", "why"),
    [
        ("Cache.lose", "drop key", "Cache.lose is there 0 times"),
        ("Cache.find", "drop self.renew()", "there 2 times"),
        ("Cache.find", "drop self.lost", "there 0 times"),
        ("Cache.find", "drop make", "needs 'make'"),
        ("Cache.find", "drop (", "no statement"),
        ("Cache.find", "invert key", "no operation"),
    ],
)
def test_what_does_not_fit_says_why(scope: str, change: str, why: str) -> None:
    with pytest.raises(Unfit, match=why.replace("(", r"\(")):
        Change(scope, change).apply(SOURCE)


def test_a_list_names_module_tests_scope_and_change() -> None:
    text = "# Of it.\n\n[a/b.py] c/d.py e.py\nF.g\n    one: drop x\n    two: never y of z: 1\n"

    first, second = read_list(text)

    assert first == Mutation(
        "one", "src/moorage/a/b.py", Change("F.g", "drop x"), ("tests/c/d.py", "tests/e.py")
    )
    assert (second.name, second.change.text) == ("two", "never y of z: 1")


@pytest.fixture(name="list_of_two")
def make_list(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "src/moorage/queue/entity.py"
    both = (
        Mutation("fits", path, Change("Entity.find", "drop return self"), ()),
        Mutation("does not", path, Change("Entity.lose", "drop return self"), ()),
        Mutation("is gone", "src/moorage/lost.py", Change("Entity", "drop return self"), ()),
    )
    monkeypatch.setattr(mutations, "MUTATIONS", both)


@pytest.mark.usefixtures("list_of_two")
def test_what_no_longer_applies_is_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mutations", "--check"])

    assert mutations.main() == 1
    assert capsys.readouterr().out.splitlines() == [
        "does not (src/moorage/queue/entity.py, Entity.lose): Entity.lose is there 0 times",
        "is gone (src/moorage/lost.py, Entity): the module is gone",
        "1 of 3 fit the code",
    ]


def test_the_command_ends_at_the_first_survivor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    class Copy(mutations.Copy):
        def __init__(self, folder: object) -> None:
            pass

        def try_mutation(self, mutation: Mutation, *, nearest: bool) -> str | None:
            tried.append(mutation.name)
            return None if len(tried) == 3 else "tests/one.py::test_it"

        def passes(self, test: str) -> bool:
            return True

    monkeypatch.setattr(mutations, "Copy", Copy)
    monkeypatch.setattr("sys.argv", ["mutations", "--at-once", "1"])

    assert mutations.main() == 1
    assert len(tried) == 3
    told = capsys.readouterr().out.splitlines()
    assert told == [f"{name}: tests/one.py::test_it" for name in tried[:2]] + [
        f"SURVIVES: {tried[2]}"
    ]
