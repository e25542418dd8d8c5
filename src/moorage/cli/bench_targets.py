"""What `moorage bench` measures: which workloads, on which schedulers."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import typer

from moorage.bench.cases import Job, WorkloadError, load_yaml, read_jobs, resolve, select
from moorage.bench.custom_kinds import definitions
from moorage.bench.engine_target import EngineTarget
from moorage.bench.harness import MakeTarget, Result, RunOutcome, run
from moorage.bench.live.control_plane import ControlPlane, open_control_plane
from moorage.bench.live.processes import SchedulerProcess, embedded_server, fill_placeholders
from moorage.bench.live.server_target import ServerTarget
from moorage.bench.operations import CreatePods
from moorage.bench.templates import Templates
from moorage.config import Configuration, FeatureGates, default, load
from moorage.config.gates import OWN, changes
from moorage.engine import Engine
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins

from .bench import EMBEDDED, ENGINE, Batching
from .inputs import read_bytes

Progress = Callable[[int], None]

# scheduler_perf switches it off where a workload does not mention it.
_BATCHING = "OpportunisticBatching"

_MOORAGE = "moorage"
_MOORAGE_COMMAND = (
    *(sys.executable, "-m", "moorage", "run", "--kubeconfig={kubeconfig}", "--config={config}"),
    *("--feature-gates={gates}", "--leader-elect=false", "--secure-port=0"),
)
_GATES = "{gates}"

# scheduler_perf gives its scheduler this rate; kube-scheduler's own limit is 50 requests a second.
_REQUESTS_PER_SECOND = 5000


def select_jobs(path: Path, pattern: str, labels: str) -> list[Job]:
    """Returns the workloads of a file or folder that have the labels and whose name matches."""
    matching = compile_regex("--filter", pattern)
    jobs = [job for job in select(read_jobs(path), labels) if matching.search(job.full_name)]
    if not jobs:
        raise WorkloadError(path, f"no workload has the labels {labels!r} and matches {pattern!r}")
    return jobs


def pod_count(job: Job) -> int:
    """Returns how many pods a workload creates, or 0 if that is not known before it runs."""
    try:
        operations = resolve(job)
    except WorkloadError:
        # The run will report what is wrong.
        return 0
    return sum(each.count for each in operations if isinstance(each, CreatePods))


def compile_regex(option: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def run_job(job: Job, make_target: MakeTarget, by: str) -> Result:
    """Runs a workload.

    A mistake in the workload gives a failed result, so that other workloads still run.
    """
    try:
        return run(job, make_target, by)
    except WorkloadError as mistake:
        return Result(job, RunOutcome.FAILED, str(mistake), by=by)


def engine_targets(
    feature_gates: str, progress: Progress, batching: Batching = Batching.DEFAULT
) -> MakeTarget:
    """Makes engines with the installed plugins, as each workload configures them."""
    plugins = registry()
    # These hold for all workloads, so a wrong one is the caller's mistake and not theirs.
    given = changes(feature_gates)

    def make(job: Job) -> EngineTarget:
        configuration = _configuration(job, _gates(job, given, batching))
        return EngineTarget(Engine(configuration, plugins), progress=progress)

    return make


def _gates(job: Job, given: Mapping[str, bool], batching: Batching) -> dict[str, bool]:
    """Returns the gates that a workload runs with, except those that have their default."""
    before = {_BATCHING: False} if batching is Batching.CASE else {}
    return {**before, **job.gates, **given}


def _configuration(job: Job, gates: Mapping[str, bool]) -> Configuration:
    """Reads the configuration that a workload names; raises ConfigError if Moorage refuses it."""
    known = known_plugins(registry())
    feature_gates = FeatureGates.parse(gates, job.full_name)
    path = job.case.document.scheduler_config_path
    if not path:
        return default(known, feature_gates)
    file = job.case.file.parent / path
    return load(read_bytes(file), known=known, source=str(file), gates=feature_gates)


@dataclass(frozen=True, slots=True)
class MeasuredScheduler:
    """A scheduler with its feature gates. The name is empty if there is only one scheduler."""

    name: str
    make_target: MakeTarget


@dataclass(frozen=True, slots=True)
class SchedulerComparison:
    """All schedulers, and what they run on."""

    schedulers: list[MeasuredScheduler]
    target: str


@contextmanager
def open_comparison(
    target: str, commands: Sequence[str], batching: Batching, gates: str, progress: Progress
) -> Iterator[SchedulerComparison]:
    """Prepares the schedulers on a target: the engine, an embedded API server or a kubeconfig."""
    if target == ENGINE:
        if commands:
            raise typer.BadParameter(
                "needs --target embedded or KUBECONFIG", param_hint="--scheduler"
            )
        several = len(batching.runs) > 1
        engines = [
            MeasuredScheduler(each.label if several else "", engine_targets(gates, progress, each))
            for each in batching.runs
        ]
        yield SchedulerComparison(engines, ENGINE)
        return
    schedulers = _parse_schedulers(commands or (_MOORAGE,))
    given = changes(gates)
    with (
        tempfile.TemporaryDirectory(prefix="moorage-bench-") as folder,
        _open_target_plane(target, Path(folder)) as plane,
    ):
        is_embedded = target == EMBEDDED
        launcher = _Launcher(plane, Path(folder), given, progress, is_embedded)
        label = EMBEDDED if is_embedded else f"kube-apiserver {plane.version()}"
        yield SchedulerComparison(list(_measured_schedulers(schedulers, batching, launcher)), label)


@dataclass(frozen=True, slots=True)
class _Scheduler:
    """A scheduler that runs as a process."""

    name: str
    command: tuple[str, ...]

    @property
    def is_moorage(self) -> bool:
        return self.command is _MOORAGE_COMMAND

    @property
    def takes_gates(self) -> bool:
        return any(_GATES in word for word in self.command)


def _parse_schedulers(commands: Sequence[str]) -> list[_Scheduler]:
    found: list[_Scheduler] = []
    for text in commands:
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise typer.BadParameter(f"{text!r}: {error}", param_hint="--scheduler") from None
        if not words:
            raise typer.BadParameter("is empty", param_hint="--scheduler")
        name = Path(words[0]).name
        again = sum(each.name.partition(" #")[0] == name for each in found)
        name = f"{name} #{again + 1}" if again else name
        found.append(_Scheduler(name, _MOORAGE_COMMAND if words == (_MOORAGE,) else words))
    return found


def _measured_schedulers(
    schedulers: Sequence[_Scheduler], batching: Batching, launcher: _Launcher
) -> Iterator[MeasuredScheduler]:
    for scheduler in schedulers:
        # A command that takes no gates cannot be run in both ways.
        runs = batching.runs if scheduler.takes_gates else batching.runs[-1:]
        for each in runs:
            name = f"{scheduler.name}, {each.label}" if len(runs) > 1 else scheduler.name
            yield MeasuredScheduler(name, launcher.targets(name, scheduler, each))


@contextmanager
def _open_target_plane(target: str, folder: Path) -> Iterator[ControlPlane]:
    if target != EMBEDDED:
        if not Path(target).is_file():
            text = f"{target!r} is not engine, embedded or a kubeconfig file"
            raise typer.BadParameter(text, param_hint="--target")
        with open_control_plane(Path(target)) as plane:
            yield plane
        return
    with embedded_server(folder) as kubeconfig, open_control_plane(kubeconfig) as plane:
        yield plane


@dataclass(frozen=True, slots=True)
class _Launcher:
    """Starts schedulers as workloads configure them."""

    plane: ControlPlane
    folder: Path
    gates: Mapping[str, bool]
    progress: Progress
    #: The embedded API server does not speak protobuf, which kube-scheduler asks for by default.
    speaks_json: bool

    def targets(self, name: str, scheduler: _Scheduler, batching: Batching) -> MakeTarget:
        def make(job: Job) -> ServerTarget:
            gates = _gates(job, self.gates, batching)
            if scheduler.is_moorage:
                # Checked here, because the process would report a mistake only in its log.
                _configuration(job, gates)
            else:
                gates = {gate: on for gate, on in gates.items() if gate not in OWN}
            self.plane.define(definitions(resolve(job), Templates(job.case.file.parent)))
            config = self._config(job)
            file = self.folder / "config.json"
            file.write_bytes(msgspec.json.encode(config))
            values = {
                "kubeconfig": str(self.plane.kubeconfig),
                "config": str(file),
                "gates": ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items()),
            }
            command = fill_placeholders(scheduler.command, values)
            process = SchedulerProcess(name, command, self.folder / "scheduler.log")
            return _warm_up(ServerTarget(self.plane, process, self.progress), config)

        return make

    def _config(self, job: Job) -> dict[str, Any]:
        """Returns the workload's configuration with our connection settings."""
        path = job.case.document.scheduler_config_path
        own = load_yaml(job.case.file.parent / path) if path else {}
        connection: dict[str, Any] = {
            "kubeconfig": str(self.plane.kubeconfig),
            "qps": _REQUESTS_PER_SECOND,
            "burst": _REQUESTS_PER_SECOND,
        }
        if self.speaks_json:
            connection["contentType"] = "application/json"
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **own,
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
        }


def _warm_up(target: ServerTarget, config: Mapping[str, Any]) -> ServerTarget:
    """Waits until the target's scheduler has placed its first pod."""
    profiles = config.get("profiles") or [{}]
    try:
        target.warm_up(profiles[0].get("schedulerName") or "default-scheduler")
    except BaseException:
        target.close()
        raise
    return target
