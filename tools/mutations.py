"""Makes each mutation of `tests/exactness/mutation_list.py` in a copy, and tests until one notices.

    python -m tools.mutations             all of them
    python -m tools.mutations -k volume   those whose name has the word
    python -m tools.mutations --remember  writes down which test or stream noticed

First comes what noticed the last time (`tests/exactness/caught_by.json`), then the tests nearest to
reuse, then streams, then other suites. What survives all of them is named, and the exit code is 1
if that is more than one in twenty. A test that fails without the mutation too ends the run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tests.exactness.mutation_list import MUTATIONS, Mutation

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "tools", "docs", "examples", "pyproject.toml")
_PYTEST = (str(Path(sys.executable).with_name("pytest")), "-x", "-q", "-p", "no:cacheprovider")

#: Which test or stream noticed each mutation the last time.
CAUGHT_BY = ROOT / "tests" / "exactness" / "caught_by.json"
_STREAMS = (sys.executable, "-m", "tools.streams", "--small")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?|\S+)(?: - .*)?$", re.MULTILINE)
_STREAM = re.compile(r"^(stream \d+) ", re.MULTILINE)

#: What is run one after the other, until something fails.
STAGES: tuple[tuple[str, ...], ...] = (
    (
        *_PYTEST,
        "tests/exactness/test_contract.py",
        "tests/exactness/test_traps.py",
        "tests/exactness/test_reuse_limits.py",
        "tests/exactness/test_catching_up.py",
        "tests/exactness/test_signatures.py",
        "tests/exactness/test_like_preemptors.py",
        "tests/engine/test_answer_cache.py",
        "tests/cluster/test_changes.py",
    ),
    (*_STREAMS, "--streams", "90"),
    (
        *_PYTEST,
        "tests/cli/test_simulate.py",
        "tests/exactness/test_gpu_aware.py",
        "tests/laws",
    ),
)
#: A stage that takes longer hangs, which is noticed as well.
_SECONDS = 1_200
_MOST_SURVIVORS = 0.05


@dataclass(frozen=True, slots=True)
class Notice:
    """How a mutation was noticed: by which stage, 0 for what is remembered, and by what of it."""

    stage: int
    test: str


class Copy:
    """A copy of the tree, in which one mutation after the other is made and tested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in COPIED:
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

    def try_mutation(self, mutation: Mutation, remembered: str, stages: int) -> Notice | None:
        """Makes a mutation, and runs one stage after the other until one notices."""
        text = (ROOT / mutation.path).read_text()
        self._write(mutation.path, text.replace(mutation.old, mutation.new))
        try:
            test = self._run(_repeat(remembered)) if remembered else None
            if test is not None:
                return Notice(0, test or remembered)
            for at, stage in enumerate(STAGES[:stages], 1):
                test = self._run(stage)
                if test is not None:
                    return Notice(at, test)
            return None
        finally:
            self._write(mutation.path, text)

    def passes(self, test: str) -> bool:
        """Whether a test or stream passes without a mutation."""
        return self._run(_repeat(test)) is None

    def _write(self, path: str, text: str) -> None:
        """Writes a file; what it was compiled to may be as old and as long, and so goes."""
        file = self._folder / path
        file.write_text(text)
        Path(cache_from_source(str(file))).unlink(missing_ok=True)

    def _run(self, command: tuple[str, ...]) -> str | None:
        """Which test or stream fails, empty if that cannot be told; nothing if none does."""
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


def _repeat(test: str) -> tuple[str, ...]:
    """The command that runs one test or stream alone."""
    if test.startswith("stream "):
        return (*_STREAMS, "--streams", "1", "--seed", test.removeprefix("stream "))
    return (*_PYTEST, test)


class Run:
    """Mutations one after the other, and what is known of each."""

    def __init__(self, copies: list[Copy], stages: int) -> None:
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        for each in copies:
            self._copies.put(each)
        self._stages = stages
        self.known: dict[str, str] = json.loads(CAUGHT_BY.read_text())
        self._sound: set[str] = set()

    def try_one(self, mutation: Mutation) -> Notice | None:
        """Tries one in a copy that nobody uses. What notices must pass without it."""
        copy = self._copies.get()
        try:
            notice = copy.try_mutation(mutation, self.known.get(mutation.name, ""), self._stages)
            test = notice.test if notice is not None else ""
            if test and test not in self._sound:
                if not copy.passes(test):
                    raise Unsound(f"{test} fails without {mutation.name!r} too")
                self._sound.add(test)
            return notice
        finally:
            self._copies.put(copy)

    def remember(self, mutation: Mutation, test: str) -> None:
        """Writes what is known, in the order of the list, without mutations that are no more."""
        self.known[mutation.name] = test
        names = (each.name for each in MUTATIONS)
        of_list = {name: self.known[name] for name in names if name in self.known}
        CAUGHT_BY.write_text(json.dumps(of_list, indent=2) + "\n")


class Unsound(Exception):
    """A test fails without a mutation: what it notices says nothing."""


def main() -> int:
    """Tries the mutations, some at a time: first those that nothing is remembered of."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", dest="word", default="", help="only those whose name has it")
    parser.add_argument("--stages", type=int, default=len(STAGES), help="the first so many alone")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--remember", action="store_true", help="writes down what noticed")
    asked = parser.parse_args()
    chosen = [each for each in MUTATIONS if asked.word in each.name and not each.equivalent]
    survivors = []
    with (
        TemporaryDirectory(prefix="mutations-") as folder,
        ThreadPoolExecutor(asked.at_once) as pool,
    ):
        run = Run([Copy(Path(folder, str(at))) for at in range(asked.at_once)], asked.stages)
        chosen.sort(key=lambda each: each.name in run.known)
        for mutation, notice in zip(chosen, pool.map(run.try_one, chosen), strict=True):
            if notice is None:
                survivors.append(mutation.name)
                print(f"SURVIVES: {mutation.name}", flush=True)
                continue
            print(f"stage {notice.stage}: {mutation.name}: {notice.test or 'hangs'}", flush=True)
            if asked.remember and notice.test:
                run.remember(mutation, notice.test)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} are caught")
    for each in MUTATIONS:
        if each.equivalent and asked.word in each.name:
            print(f"equivalent: {each.name}: {each.equivalent}")
    return int(len(survivors) > _MOST_SURVIVORS * len(chosen))


if __name__ == "__main__":
    sys.exit(main())
