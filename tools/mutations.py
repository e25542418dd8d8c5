"""Makes each mistake of `tools/mutations.txt` in a copy of the code: some test must notice.

    python -m tools.mutations               all of them
    python -m tools.mutations -k volume     those whose name has the word
    python -m tools.mutations --sample 15   as many, spread evenly over the list
    python -m tools.mutations --check       only whether each still fits the code

First come the tests that the list names as nearest, then those of reuse, then streams, then other
suites. The command ends with exit code 1 at the first mistake that survives all of them, and at a
test that fails without the mistake, too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from .syntax import Change, Unfit

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tools" / "mutations.txt"

_COPIED = ("src", "tests", "tools", "docs", "examples", "pyproject.toml")
_PYTEST = (str(Path(sys.executable).with_name("pytest")), "-x", "-q", "-p", "no:cacheprovider")
_STREAMS = (sys.executable, "-m", "tools.streams", "--small")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?|\S+)(?: - .*)?$", re.MULTILINE)
_STREAM = re.compile(r"^stream (\d+) ", re.MULTILINE)

#: What is run after the nearest tests, until something fails.
_FURTHER: tuple[tuple[str, ...], ...] = (
    (
        *_PYTEST,
        *(
            f"tests/exactness/test_{name}.py"
            for name in (
                *("contract", "traps", "reuse_limits", "catching_up", "signatures"),
                *("like_preemptors", "gpu_aware"),
            )
        ),
    ),
    (*_STREAMS, "--streams", "90"),
    (*_PYTEST, "tests/queue", "tests/testing", "tests/laws", "tests/cli/test_simulate.py"),
)
#: A stage that takes longer hangs, which is noticed as well.
_SECONDS = 1_200


class Unsound(Exception):
    """A test fails without a mutation: what it notices says nothing."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mistake in a module, and the tests nearest to it."""

    name: str
    path: str
    change: Change
    tests: tuple[str, ...]

    def apply(self) -> str:
        """Returns the module with the mistake; raises Unfit."""
        path = ROOT / self.path
        if not path.exists():
            raise Unfit("the module is gone")
        return self.change.apply(path.read_text())


def read_list(text: str) -> Iterator[Mutation]:
    """Yields the mutations of a list."""
    path, scope = "", ""
    tests: tuple[str, ...] = ()
    for line in text.splitlines():
        if line.startswith("["):
            module, *names = line[1:].replace("]", "").split()
            path, tests = f"src/moorage/{module}", tuple(f"tests/{each}" for each in names)
        elif line.startswith("    "):
            name, _, change = line.strip().partition(": ")
            yield Mutation(name, path, Change(scope, change), tests)
        elif not line.startswith("#"):
            scope = line


MUTATIONS = tuple(read_list(LIST.read_text()))


class Copy:
    """A copy of the tree, in which one mutation after the other is made and tested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("golden", "__pycache__")
                shutil.copytree(source, folder / name, ignore=ignored)
            else:
                shutil.copy(source, folder / name)
        (folder / "tests" / "golden").symlink_to(ROOT / "tests" / "golden")
        self._environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}:{folder}"}
        # What is compiled stays, except of the file that changes.
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def try_mutation(self, mutation: Mutation, *, nearest: bool) -> str | None:
        """Returns what notices a mutation: a test, the number of a stream, or "" for a hang."""
        stages = ((*_PYTEST, *mutation.tests), *(() if nearest else _FURTHER))
        self._write(mutation.path, mutation.apply())
        try:
            return next((test for each in stages if (test := self._run(each)) is not None), None)
        finally:
            self._write(mutation.path, (ROOT / mutation.path).read_text())

    def passes(self, test: str) -> bool:
        """Whether a test or stream passes without a mutation."""
        alone = (
            (*_STREAMS, "--streams", "1", "--seed", test) if test.isdigit() else (*_PYTEST, test)
        )
        return self._run(alone) is None

    def _write(self, path: str, text: str) -> None:
        """Writes a file; what it was compiled to may be as old and as long, and so goes."""
        file = self._folder / path
        file.write_text(text)
        Path(cache_from_source(str(file))).unlink(missing_ok=True)

    def _run(self, command: Sequence[str]) -> str | None:
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ""
        if done.returncode == 0:
            return None
        found = _FAILED.search(done.stdout) or _STREAM.search(done.stdout)
        return found[1] if found else ""


class Run:
    """Tries mutations in some copies."""

    def __init__(self, copies: Sequence[Copy], *, nearest: bool) -> None:
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        for each in copies:
            self._copies.put(each)
        self._nearest = nearest
        self._sound: set[str] = set()
        self._is_over = False

    def try_one(self, mutation: Mutation) -> str | None:
        """Returns what notices a mutation, which must pass without it.

        After one that survives, none is tried.
        """
        copy = self._copies.get()
        try:
            test = None if self._is_over else copy.try_mutation(mutation, nearest=self._nearest)
            if test is None:
                self._is_over = True
            if test and test not in self._sound:
                if not copy.passes(test):
                    raise Unsound(f"{test} fails without {mutation.name!r}, too")
                self._sound.add(test)
            return test
        finally:
            self._copies.put(copy)


def find_unfit() -> list[str]:
    """Returns the mutations that do not fit the code any more, and why."""
    found = []
    for each in MUTATIONS:
        try:
            each.apply()
        except Unfit as why:
            found.append(f"{each.name} ({each.path}, {each.change.scope}): {why}")
    return found


def try_all(chosen: Sequence[Mutation], at_once: int, *, nearest: bool) -> str | None:
    """Tries mutations, some at a time; returns the first that survives."""
    with TemporaryDirectory(prefix="mutations-") as folder:
        run = Run([Copy(Path(folder, str(at))) for at in range(at_once)], nearest=nearest)
        pool = ThreadPoolExecutor(at_once)
        try:
            for mutation, test in zip(chosen, pool.map(run.try_one, chosen), strict=True):
                if test is None:
                    return mutation.name
                print(f"{mutation.name}: {test or 'hangs'}", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    return None


def main() -> int:
    """Tries the mutations that are asked for; returns 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", dest="word", default="", help="only those whose name has it")
    parser.add_argument("--sample", type=int, default=len(MUTATIONS), help="only so many of them")
    parser.add_argument("--nearest", action="store_true", help="only run the nearest tests")
    parser.add_argument("--check", action="store_true", help="only check that they fit the code")
    parser.add_argument("--at-once", type=int, default=2)
    asked = parser.parse_args()
    unfit = find_unfit()
    print(*unfit, sep="\n", end="\n" if unfit else "")
    if unfit or asked.check:
        print(f"{len(MUTATIONS) - len(unfit)} of {len(MUTATIONS)} fit the code")
        return int(bool(unfit))
    chosen = [each for each in MUTATIONS if asked.word in each.name]
    count = min(asked.sample, len(chosen))
    chosen = [chosen[at * len(chosen) // count] for at in range(count)]
    try:
        survivor = try_all(chosen, asked.at_once, nearest=asked.nearest)
    except Unsound as why:
        print(f"UNSOUND: {why}")
        return 1
    print(f"all {count} are caught" if survivor is None else f"SURVIVES: {survivor}")
    return int(survivor is not None)


if __name__ == "__main__":
    sys.exit(main())
