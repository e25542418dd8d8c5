"""The targets that the options of `mooring bench` describe."""

from __future__ import annotations

import cProfile
import re
from collections.abc import Callable
from pathlib import Path

from mooring.bench.cases import Job
from mooring.bench.engine_target import EngineTarget
from mooring.bench.run import MakeTarget, Result, run
from mooring.config import Configuration, FeatureGates, default, load
from mooring.config.gates import changes
from mooring.engine import Engine
from mooring.engine.registry import registry
from mooring.framework.profile import known_plugins
from mooring.simulate.problems import InputError

from .surroundings import InMemory


def engine_targets(feature_gates: str, progress: Callable[[int], None]) -> MakeTarget:
    """Makes engines with the plugins that are installed, as each workload configures them."""
    plugins = registry()
    known = known_plugins(plugins)
    # Given for all workloads, so a wrong one is the caller's mistake and not theirs.
    given = changes(feature_gates)

    def made(job: Job) -> EngineTarget:
        gates = FeatureGates.parse({**job.gates, **given}, job.full_name)
        path = job.case.written.scheduler_config_path
        configuration: Configuration
        if path:
            file = job.case.file.parent / path
            configuration = load(_text(file), known=known, source=str(file), gates=gates)
        else:
            configuration = default(known, gates)
        return EngineTarget(Engine(configuration, plugins), InMemory(), progress=progress)

    return made


def profiled(job: Job, make_target: MakeTarget, folder: Path) -> Result:
    """Runs a workload and writes where the time went, for pstats; figures are far worse then."""
    profile = cProfile.Profile()
    result = profile.runcall(run, job, make_target)
    folder.mkdir(parents=True, exist_ok=True)
    profile.dump_stats(folder / f"{re.sub('[^A-Za-z0-9]+', '_', job.full_name)}.pstats")
    return result


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, (error.strerror or str(error)).lower()) from error
