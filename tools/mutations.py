"""Makes each mutation of `tests/exactness/mutation_list.py` in a copy, and tests until one notices.

    python -m tools.mutations            all of them, which takes about an hour of processor time
    python -m tools.mutations -k volume  those whose name has the word

First come the tests nearest to reuse, then streams, then other suites. What survives all of them is
named, and the exit code is 1 if that is more than one in twenty.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.exactness.mutation_list import MUTATIONS, Mutation

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "tools", "docs", "examples", "pyproject.toml")
_PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header")

#: What is run one after the other, until something fails.
STAGES: tuple[tuple[str, ...], ...] = (
    (
        *_PYTEST,
        "tests/exactness/test_contract.py",
        "tests/exactness/test_traps.py",
        "tests/exactness/test_reuse_limits.py",
        "tests/engine/test_answer_cache.py",
        "tests/cluster/test_changes.py",
    ),
    ("-m", "tools.streams", "--streams", "90", "--small"),
    (
        *_PYTEST,
        "tests/exactness/test_signatures.py",
        "tests/cli/test_simulate.py",
        "tests/exactness/test_gpu_aware.py",
        "tests/laws",
    ),
)
#: A stage that takes longer hangs, which is noticed as well.
_SECONDS = 1_200
_MOST_SURVIVORS = 0.05


def try_mutation(mutation: Mutation, stages: tuple[tuple[str, ...], ...]) -> int:
    """The number of the stage that notices, from 1 on; 0 if none does."""
    with TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("golden")
                shutil.copytree(source, copy / name, ignore=ignored)
            else:
                shutil.copy(source, copy / name)
        (copy / "tests" / "golden").symlink_to(ROOT / "tests" / "golden")
        path = copy / mutation.path
        path.write_text(path.read_text().replace(mutation.old, mutation.new))
        return next((at for at, stage in enumerate(stages, 1) if _notices(stage, copy)), 0)


def _notices(stage: tuple[str, ...], copy: Path) -> bool:
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}"}
    try:
        done = subprocess.run(
            [sys.executable, *stage],
            cwd=copy,
            env=environment,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> int:
    """Tries the mutations, some at a time."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", dest="word", default="", help="only those whose name has it")
    parser.add_argument("--stages", type=int, default=len(STAGES), help="the first so many alone")
    parser.add_argument("--at-once", type=int, default=2)
    asked = parser.parse_args()
    stages = STAGES[: asked.stages]
    chosen = [each for each in MUTATIONS if asked.word in each.name and not each.equivalent]
    survivors = []
    with ThreadPoolExecutor(asked.at_once) as pool:
        found = pool.map(lambda each: try_mutation(each, stages), chosen)
        for mutation, stage in zip(chosen, found, strict=True):
            print(f"{'stage ' + str(stage) if stage else 'SURVIVES'}: {mutation.name}", flush=True)
            if not stage:
                survivors.append(mutation.name)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} are caught")
    for each in MUTATIONS:
        if each.equivalent and asked.word in each.name:
            print(f"equivalent: {each.name}: {each.equivalent}")
    return int(len(survivors) > _MOST_SURVIVORS * len(chosen))


if __name__ == "__main__":
    sys.exit(main())
