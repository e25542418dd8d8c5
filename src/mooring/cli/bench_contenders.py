"""Who is measured by `mooring bench`: one scheduler or several, each in one way or two."""

from __future__ import annotations

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

from mooring.bench.cases import Job, load_yaml
from mooring.bench.kinds import definitions
from mooring.bench.live.api_server import embedded_server
from mooring.bench.live.plane import Plane, opened
from mooring.bench.live.process import SchedulerProcess, filled
from mooring.bench.live.target import ServerTarget
from mooring.bench.parameters import resolved
from mooring.bench.run import MakeTarget
from mooring.bench.templates import Templates
from mooring.config.gates import OWN, changes

from .bench_options import EMBEDDED, ENGINE, Batching
from .bench_targets import configured, engine_targets, gates_of

Progress = Callable[[int], None]

_MOORING = "mooring"
_RUN = (
    *(sys.executable, "-m", "mooring", "run", "--kubeconfig={kubeconfig}", "--config={config}"),
    *("--feature-gates={gates}", "--leader-elect=false", "--secure-port=0"),
)
_GATES = "{gates}"

# What scheduler_perf gives its scheduler; kube-scheduler's own limit is 50 requests a second.
_REQUESTS_PER_SECOND = 5000


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler in one way of running it. Without a name it is the only one."""

    name: str
    make_target: MakeTarget


@dataclass(frozen=True, slots=True)
class Field:
    """Everybody who is measured, and on what."""

    contenders: list[Contender]
    target: str


@dataclass(frozen=True, slots=True)
class _Scheduler:
    name: str
    command: tuple[str, ...]

    @property
    def is_mooring(self) -> bool:
        return self.command is _RUN

    @property
    def takes_gates(self) -> bool:
        return any(_GATES in word for word in self.command)


@contextmanager
def contenders(
    target: str, commands: Sequence[str], batching: Batching, gates: str, progress: Progress
) -> Iterator[Field]:
    """Whoever is measured on a target: the engine, an embedded API server or a kubeconfig."""
    if target == ENGINE:
        if commands:
            raise typer.BadParameter(
                "needs --target embedded or KUBECONFIG", param_hint="--scheduler"
            )
        engines = [
            Contender(
                each.told if len(batching.ways) > 1 else "", engine_targets(gates, progress, each)
            )
            for each in batching.ways
        ]
        yield Field(engines, ENGINE)
        return
    schedulers = _schedulers(commands or (_MOORING,))
    given = changes(gates)
    with (
        tempfile.TemporaryDirectory(prefix="mooring-bench-") as folder,
        _plane(target, Path(folder)) as plane,
    ):
        is_embedded = target == EMBEDDED
        starting = _Starting(plane, Path(folder), given, progress, is_embedded)
        told = EMBEDDED if is_embedded else f"kube-apiserver {plane.version()}"
        yield Field(list(_all_ways(schedulers, batching, starting)), told)


def _schedulers(commands: Sequence[str]) -> list[_Scheduler]:
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
        found.append(_Scheduler(name, _RUN if words == (_MOORING,) else words))
    return found


def _all_ways(
    schedulers: Sequence[_Scheduler], batching: Batching, starting: _Starting
) -> Iterator[Contender]:
    for scheduler in schedulers:
        # Gates that a command does not take cannot be switched, so there is only one way.
        ways = batching.ways if scheduler.takes_gates else batching.ways[-1:]
        for way in ways:
            name = f"{scheduler.name}, {way.told}" if len(ways) > 1 else scheduler.name
            yield Contender(name, starting.maker(name, scheduler, way))


@contextmanager
def _plane(target: str, folder: Path) -> Iterator[Plane]:
    if target != EMBEDDED:
        if not Path(target).is_file():
            told = f"{target!r} is not engine, embedded or a kubeconfig file"
            raise typer.BadParameter(told, param_hint="--target")
        with opened(Path(target)) as plane:
            yield plane
        return
    with embedded_server(folder) as kubeconfig, opened(kubeconfig) as plane:
        yield plane


@dataclass(frozen=True, slots=True)
class _Starting:
    """Starts schedulers as workloads ask for."""

    plane: Plane
    folder: Path
    given: Mapping[str, bool]
    progress: Progress
    #: The embedded API server speaks no protobuf, which kube-scheduler asks for otherwise.
    speaks_json: bool

    def maker(self, name: str, scheduler: _Scheduler, way: Batching) -> MakeTarget:
        def made(job: Job) -> ServerTarget:
            gates = gates_of(job, self.given, way)
            if scheduler.is_mooring:
                # A process would only write it into its log.
                configured(job, gates)
            else:
                gates = {gate: on for gate, on in gates.items() if gate not in OWN}
            self.plane.define(definitions(resolved(job), Templates(job.case.file.parent)))
            config = self._config(job)
            file = self.folder / "config.json"
            file.write_bytes(msgspec.json.encode(config))
            values = {
                "kubeconfig": str(self.plane.kubeconfig),
                "config": str(file),
                "gates": ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items()),
            }
            command = filled(scheduler.command, values)
            process = SchedulerProcess(name, command, self.folder / "scheduler.log")
            return _warm(ServerTarget(self.plane, process, self.progress), config)

        return made

    def _config(self, job: Job) -> dict[str, Any]:
        """The workload's configuration, with what concerns the connection."""
        path = job.case.written.scheduler_config_path
        written = load_yaml(job.case.file.parent / path) if path else {}
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
            **written,
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
        }


def _warm(target: ServerTarget, config: Mapping[str, Any]) -> ServerTarget:
    """The target once its scheduler is at work."""
    profiles = config.get("profiles") or [{}]
    try:
        target.warm_up(profiles[0].get("schedulerName") or "default-scheduler")
    except BaseException:
        target.close()
        raise
    return target
