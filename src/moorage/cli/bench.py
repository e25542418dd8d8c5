"""`moorage bench`: run workloads in scheduler_perf's language and measure them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .rendering import PlainCommand, PlainGroup, ProgressBar, plain

if TYPE_CHECKING:
    from moorage.bench.harness import MakeTarget, Result
    from moorage.bench.results import DataItem

ENGINE, EMBEDDED = "engine", "embedded"


class Batching(StrEnum):
    """Whether a workload that does not mention batching is run with it."""

    DEFAULT = "default"
    CASE = "case"
    BOTH = "both"

    @property
    def runs(self) -> tuple[Batching, ...]:
        """The values to run each workload with."""
        return (Batching.CASE, Batching.DEFAULT) if self is Batching.BOTH else (self,)

    @property
    def label(self) -> str:
        return "batching as the case says" if self is Batching.CASE else "default gates"


CasesArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PATH", help="A file of test cases, or a folder with files performance-config.yaml."
    ),
]
FilterOption = Annotated[
    str,
    typer.Option("--filter", metavar="REGEX", help="Run only workloads whose name matches."),
]
LabelsOption = Annotated[
    str,
    typer.Option(
        metavar="A,-B",
        help="Run only workloads that have label A and do not have label B. '' runs all.",
    ),
]
GatesOption = Annotated[
    str,
    typer.Option(
        metavar="A=true,B=false",
        help="Switch these feature gates. Overrides the gates of a workload.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write results.json (data items of scheduler_perf) to this folder.",
    ),
]
CountOption = Annotated[
    int, typer.Option(metavar="COUNT", min=1, help="Run each workload this many times.")
]


class _RunsByDefault(PlainGroup):
    """A group whose first argument may be a path instead of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["run", *args]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


app = typer.Typer(
    cls=_RunsByDefault,
    no_args_is_help=True,
    help="Run workloads in scheduler_perf's language and measure them: moorage bench PATH",
)


@app.command("run", cls=PlainCommand)
def run(  # noqa: PLR0913 - one for each option
    path: CasesArgument,
    pattern: FilterOption = "",
    labels: LabelsOption = "performance",
    target: Annotated[
        str,
        typer.Option(
            metavar="engine|embedded|KUBECONFIG",
            help="Run on the engine alone, on an embedded API server, or on the API server of a "
            "kubeconfig, which must have neither nodes nor pods.",
        ),
    ] = ENGINE,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            "--scheduler",
            metavar="COMMAND",
            help="Measure the scheduler that this command starts. {kubeconfig}, {config} and "
            "{gates} are replaced; the command `moorage` is Moorage itself. May be repeated.",
        ),
    ] = None,
    count: CountOption = 1,
    feature_gates: GatesOption = "",
    batching: Annotated[
        Batching,
        typer.Option(
            help="The gate OpportunisticBatching of workloads that do not mention it: its "
            "default, off as in scheduler_perf (case), or both in turns."
        ),
    ] = Batching.DEFAULT,
    out: OutOption = None,
) -> None:
    """Run the workloads of a file or folder.

    A run counts only if every pod that should be placed was placed. Exit code: 0 if all went well,
    1 if a threshold was missed or a run failed, 2 if the input cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from .bench_report import report, report_run
    from .bench_targets import open_comparison, pod_count, run_job, select_jobs

    jobs = select_jobs(path, pattern, labels)
    results: list[Result] = []
    with (
        ProgressBar() as bar,
        open_comparison(target, scheduler or (), batching, feature_gates, bar.update) as comparison,
    ):
        runs = [(job, by) for job in jobs for _ in range(count) for by in comparison.schedulers]
        for number, (job, by) in enumerate(runs):
            bar.stage(f"{number + 1}/{len(runs)} {plain(job.full_name)}", pod_count(job))
            results.append(run_job(job, by.make_target, by.name))
            report_run(results[-1])
    report(results, comparison.target, out)


@app.command("gates", cls=PlainCommand)
def gates(
    path: CasesArgument,
    switched: Annotated[
        str, typer.Argument(metavar="A=true,B=false", help="Feature gates to switch.")
    ],
    pattern: FilterOption = "",
    labels: LabelsOption = "performance",
    count: CountOption = 9,
) -> None:
    """Run workloads with and without some feature gates, in turns, and compare the two.

    They run in turns because the speed of a machine changes from minute to minute.
    """
    from moorage.bench.comparison import compare as compare_items
    from moorage.bench.harness import run as run_job

    from .bench_report import comparison_tables
    from .bench_targets import engine_targets, pod_count, select_jobs

    jobs = select_jobs(path, pattern, labels)
    with ProgressBar() as bar:
        sides: list[tuple[MakeTarget, list[DataItem]]] = [
            (engine_targets("", bar.update), []),
            (engine_targets(switched, bar.update), []),
        ]
        for job in jobs:
            for number in range(count):
                bar.stage(f"{number + 1}/{count} {plain(job.full_name)}", 2 * pod_count(job))
                # The second run may find a warmer machine, or a slower one.
                for make_target, items in sides if number % 2 else reversed(sides):
                    items += run_job(job, make_target).items
    compared = list(compare_items(sides[0][1], sides[1][1]))
    print(comparison_tables(compared, "as it is", plain(switched)))


@app.command("compare", cls=PlainCommand)
def compare(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="A file of data items, or a folder of them.")
    ],
    after: Annotated[
        Path, typer.Argument(metavar="AFTER", help="The file or folder to compare it with.")
    ],
    pattern: Annotated[
        str,
        typer.Option(
            "--filter", metavar="REGEX", help="Compare only workloads whose name matches."
        ),
    ] = "",
    metric: Annotated[
        str, typer.Option(metavar="REGEX", help="Compare only metrics whose name matches.")
    ] = "",
) -> None:
    """Compare two sets of results: medians, spread, change, and whether it is more than noise.

    Reads what `moorage bench --out` writes, and what kube-scheduler's own runs of scheduler_perf
    write. Run workloads with --count 6 or more to tell a change from noise.
    """
    from moorage.bench.comparison import compare as compare_items
    from moorage.bench.results import read_results

    from .bench_report import comparison_tables
    from .bench_targets import compile_regex

    names, metrics = compile_regex("--filter", pattern), compile_regex("--metric", metric)
    found = [
        each
        for each in compare_items(read_results(before).data_items, read_results(after).data_items)
        if names.search(each.name) and metrics.search(each.metric)
    ]
    print(comparison_tables(found, plain(str(before)), plain(str(after))))
