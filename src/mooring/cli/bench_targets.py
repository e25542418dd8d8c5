"""The targets that the options of `mooring bench` describe."""

from __future__ import annotations

import cProfile
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from mooring.bench.cases import Job
from mooring.bench.engine_target import EngineTarget
from mooring.bench.problems import WorkloadError
from mooring.bench.run import MakeTarget, Outcome, Result, run
from mooring.config import Configuration, FeatureGates, default, load
from mooring.config.gates import changes
from mooring.engine import Engine
from mooring.engine.registry import registry
from mooring.framework.profile import known_plugins
from mooring.simulate.problems import InputError

from .bench_options import Batching
from .surroundings import InMemory

# scheduler_perf switches it off where a workload says nothing about it.
_BATCHING = "OpportunisticBatching"


def engine_targets(
    feature_gates: str, progress: Callable[[int], None], batching: Batching = Batching.DEFAULT
) -> MakeTarget:
    """Makes engines with the plugins that are installed, as each workload configures them."""
    plugins = registry()
    # Given for all workloads, so a wrong one is the caller's mistake and not theirs.
    given = changes(feature_gates)

    def made(job: Job) -> EngineTarget:
        configuration = configured(job, gates_of(job, given, batching))
        return EngineTarget(Engine(configuration, plugins), InMemory(), progress=progress)

    return made


def gates_of(job: Job, given: Mapping[str, bool], batching: Batching) -> dict[str, bool]:
    """The gates that a workload is run with, as far as they are not the defaults."""
    before = {_BATCHING: False} if batching is Batching.CASE else {}
    return {**before, **job.gates, **given}


def configured(job: Job, switched: Mapping[str, bool]) -> Configuration:
    """The configuration that a workload asks for; raises ConfigError if Mooring refuses it."""
    known = known_plugins(registry())
    gates = FeatureGates.parse(switched, job.full_name)
    path = job.case.written.scheduler_config_path
    if not path:
        return default(known, gates)
    file = job.case.file.parent / path
    return load(_text(file), known=known, source=str(file), gates=gates)


def run_job(job: Job, make_target: MakeTarget, by: str, folder: Path | None) -> Result:
    """Runs a workload. One that has a mistake in it has failed, and keeps no other from running.

    With a folder, writes there where the time went, for pstats. Figures are far worse then.
    """
    try:
        return _run(job, make_target, by, folder)
    except WorkloadError as mistake:
        return Result(job, Outcome.FAILED, str(mistake), by=by)


def _run(job: Job, make_target: MakeTarget, by: str, folder: Path | None) -> Result:
    if folder is None:
        return run(job, make_target, by)
    profile = cProfile.Profile()
    result = profile.runcall(run, job, make_target, by)
    folder.mkdir(parents=True, exist_ok=True)
    profile.dump_stats(folder / f"{re.sub('[^A-Za-z0-9]+', '_', result.title)}.pstats")
    return result


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, (error.strerror or str(error)).lower()) from error
