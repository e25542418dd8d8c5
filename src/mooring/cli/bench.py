"""`mooring bench`: run workloads in scheduler_perf's language, and tell how fast it went."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .bench_options import (
    ENGINE,
    Batching,
    BatchingWays,
    CountOption,
    Filter,
    Gates,
    Labels,
    OnAnyTarget,
    OnEngine,
    Out,
    Schedulers,
    TargetName,
)
from .progress import ProgressBar
from .text import plain

if TYPE_CHECKING:
    from mooring.bench.data_items import DataItem
    from mooring.bench.run import MakeTarget, Result


class _RunsByDefault(TyperGroup):
    """A group whose first argument may be a path instead of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["run", *args]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


app = typer.Typer(
    cls=_RunsByDefault,
    no_args_is_help=True,
    help="Run workloads in scheduler_perf's language and measure them: mooring bench PATH",
)


@app.command("run")
def run(  # noqa: PLR0913 - one for each option
    path: Annotated[
        Path, typer.Argument(help="A file of test cases, or a folder with performance-config.yaml.")
    ],
    pattern: Filter = "",
    labels: Labels = "performance",
    target: OnAnyTarget = ENGINE,
    scheduler: Schedulers = None,
    count: CountOption = 1,
    feature_gates: Gates = "",
    batching: BatchingWays = Batching.DEFAULT,
    out: Out = None,
    profile: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a profile of each run.")
    ] = None,
) -> None:
    """Run the workloads of a file or folder.

    Every pod that should be placed must be, or the run does not count. Exits with 0 when all went
    well, 1 when a threshold was missed or a run failed, 2 when the input cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from .bench_choice import chosen, pod_count
    from .bench_contenders import contenders
    from .bench_report import tell, tell_one
    from .bench_targets import run_job

    jobs = chosen(path, pattern, labels)
    results: list[Result] = []
    with (
        ProgressBar() as bar,
        contenders(target, scheduler or (), batching, feature_gates, bar.update) as field,
    ):
        runs = [(job, by) for job in jobs for _ in range(count) for by in field.contenders]
        for number, (job, by) in enumerate(runs):
            bar.stage(f"{number + 1}/{len(runs)} {plain(job.full_name)}", pod_count(job))
            results.append(run_job(job, by.make_target, by.name, profile))
            tell_one(results[-1])
    tell(results, [], field.target, out)


@app.command("growth")
def growth(  # noqa: PLR0913 - one for each option
    path: Annotated[Path, typer.Argument(help="As for run.")] = Path("benchmarks/growth"),
    pattern: Filter = "",
    labels: Labels = "growth",
    target: OnEngine = TargetName.ENGINE,
    nodes: Annotated[
        str, typer.Option(metavar="N,M", help="How many nodes.")
    ] = "1000,3000,10000,30000,100000",
    pods: Annotated[str, typer.Option(metavar="N,M", help="How many pods.")] = "1000,3000",
    feature_gates: Gates = "",
    out: Out = None,
) -> None:
    """Run workloads in many sizes and tell how time grows: as which power of nodes and of pods.

    The workloads must have the parameters initNodes and measurePods.
    """
    from mooring.bench.growth import Sweep, grow

    from .bench_choice import chosen, numbers, pod_count
    from .bench_report import tell
    from .bench_targets import engine_targets

    sweep = Sweep(numbers("--nodes", nodes), numbers("--pods", pods))
    jobs = chosen(path, pattern, labels)
    with ProgressBar() as bar:
        make_target: MakeTarget = engine_targets(feature_gates, bar.update)
        grown = [
            grow(
                job,
                sweep,
                make_target,
                lambda sized: bar.stage(plain(sized.full_name), pod_count(sized)),
            )
            for job in jobs
        ]
    results = [result for each in grown for result in each.results]
    tell(results, grown, target.value, out)


@app.command("gates")
def gates(
    path: Annotated[Path, typer.Argument(help="As for run.")],
    switched: Annotated[
        str, typer.Argument(metavar="A=true,B=false", help="Feature gates to switch.")
    ],
    pattern: Filter = "",
    labels: Labels = "performance",
    count: CountOption = 9,
) -> None:
    """Run workloads with and without feature gates switched, in turns, and compare the two.

    In turns, because a machine is not as fast now as it was a minute ago.
    """
    from mooring.bench.compare import compare as compare_items
    from mooring.bench.run import run as run_job

    from .bench_choice import chosen, pod_count
    from .bench_tables import comparison
    from .bench_targets import engine_targets

    jobs = chosen(path, pattern, labels)
    with ProgressBar() as bar:
        ways: list[tuple[MakeTarget, list[DataItem]]] = [
            (engine_targets("", bar.update), []),
            (engine_targets(switched, bar.update), []),
        ]
        for job in jobs:
            for number in range(count):
                bar.stage(f"{number + 1}/{count} {plain(job.full_name)}", 2 * pod_count(job))
                # Whoever comes second may find a warmer machine, or a slower one.
                for make_target, told in ways if number % 2 else reversed(ways):
                    told += run_job(job, make_target).items
    print(comparison(list(compare_items(ways[0][1], ways[1][1])), "as it is", plain(switched)))


@app.command("compare")
def compare(
    before: Annotated[Path, typer.Argument(help="A file of data items, or a folder of them.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
    pattern: Filter = "",
    metric: Annotated[
        str, typer.Option(metavar="REGEX", help="Only metrics whose name matches.")
    ] = "",
) -> None:
    """Compare two sets of results: medians, spread, change, and whether it is more than noise.

    Takes what `mooring bench --out` writes, and what kube-scheduler's own runs of scheduler_perf
    write. Run workloads with --count 6 or more to tell a change from noise.
    """
    from mooring.bench.compare import compare as compare_items
    from mooring.bench.data_items import read

    from .bench_choice import regex
    from .bench_tables import comparison

    names, metrics = regex("--filter", pattern), regex("--metric", metric)
    found = [
        each
        for each in compare_items(read(before).data_items, read(after).data_items)
        if names.search(each.name) and metrics.search(each.metric)
    ]
    print(comparison(found, plain(str(before)), plain(str(after))))
