"""`moorage up`: a whole cluster in one process, to try things on."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from .options import (
    FeatureGatesOption,
    LogLevel,
    PluginsOption,
    RunSecondsOption,
    StartSecondsOption,
    StopSecondsOption,
)

_DEMO, _SERVER, _SCHEDULER = "Demo", "API server", "Scheduler"

# The demo has its own cluster: on another one its promises would not hold.
_NOT_WITH_DEMO = (
    "nodes",
    "source",
    "with_values",
    "config",
    "data_dir",
    "feature_gates",
    "plugins",
    "no_scheduler",
    "for_seconds",
)
_ONLY_WITH_DEMO = ("once", "pace")


class SchedulerLink(StrEnum):
    """How the scheduler reaches the API server."""

    DIRECT = "direct"
    HTTP = "http"
    NONE = "none"


NodesOption = Annotated[
    str,
    typer.Option(
        metavar="COUNT|FILE",
        help="Number of nodes, or a file with Node manifests or shapes (docs/embedded-cluster.md).",
    ),
]
FromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="SOURCE",
        help="Begin with a copy of another cluster: a dump such as `kubectl get -o yaml` prints, "
        "a recording, or the cluster of a kubeconfig. May be repeated.",
        show_default=False,
    ),
]
WithValuesOption = Annotated[
    bool,
    typer.Option(
        "--with-values",
        help="Copy Secrets, the values of ConfigMaps and environment variables, too.",
    ),
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write a kubeconfig to this file. Default: a temporary file."
    ),
]
ForSecondsOption = Annotated[
    float | None,
    typer.Option(
        "--for",
        metavar="SECONDS",
        min=0.0,
        help="Stop this long after the cluster is ready. Default: run until Ctrl-C.",
    ),
]
DemoOption = Annotated[
    bool,
    typer.Option(
        "--demo",
        help="Show a demo of about a minute on nodes of its own, then keep the cluster up.",
        rich_help_panel=_DEMO,
    ),
]
OnceOption = Annotated[
    bool,
    typer.Option(
        "--once",
        help="Stop at the end of the demo, for scripts. Exit code: 0 if all checks passed, else 1.",
        rich_help_panel=_DEMO,
    ),
]
NoBrowserOption = Annotated[
    bool,
    typer.Option(
        "--no-browser",
        help="Do not open the page in a browser. Only the demo opens it.",
        rich_help_panel=_DEMO,
    ),
]
PaceOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.0,
        help="Time to read each step. Default: 3 seconds, or none with --once.",
        rich_help_panel=_DEMO,
    ),
]
ListenOption = Annotated[
    str,
    typer.Option(metavar="ADDRESS", help="Address to listen on.", rich_help_panel=_SERVER),
]
PortOption = Annotated[
    int,
    typer.Option(
        metavar="PORT",
        min=0,
        max=65535,
        help="Port to listen on. 0 takes a free one.",
        rich_help_panel=_SERVER,
    ),
]
TokenOption = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        envvar="MOORAGE_UP_TOKEN",
        help="Bearer token that clients must send. Default: a random one.",
        rich_help_panel=_SERVER,
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep the cluster in this folder and continue with it next time. Default: keep "
        "it in memory.",
        rich_help_panel=_SERVER,
    ),
]
SchedulerOption = Annotated[
    SchedulerLink,
    typer.Option(
        help="How the scheduler reaches the API server: within the process, by HTTP, or none "
        "to run another scheduler.",
        rich_help_panel=_SCHEDULER,
    ),
]
NoSchedulerOption = Annotated[
    bool,
    typer.Option(
        "--no-scheduler",
        help="Start the cluster without a scheduler.",
        rich_help_panel=_SCHEDULER,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Read this KubeSchedulerConfiguration.",
        rich_help_panel=_SCHEDULER,
    ),
]
LogLevelOption = Annotated[LogLevel, typer.Option(help="Log messages of this level and above.")]


def up(  # noqa: PLR0913 - one for each flag
    context: typer.Context,
    nodes: NodesOption = "5",
    source: FromOption = None,
    with_values: WithValuesOption = False,
    kubeconfig: KubeconfigOption = None,
    for_seconds: ForSecondsOption = None,
    demo: DemoOption = False,
    once: OnceOption = False,
    no_browser: NoBrowserOption = False,
    pace: PaceOption = None,
    listen: ListenOption = "127.0.0.1",
    port: PortOption = 0,
    token: TokenOption = "",
    data_dir: DataDirOption = None,
    run_seconds: RunSecondsOption = 10.0,
    start_seconds: StartSecondsOption = 0.0,
    stop_seconds: StopSecondsOption = 1.0,
    scheduler: SchedulerOption = SchedulerLink.DIRECT,
    no_scheduler: NoSchedulerOption = False,
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginsOption = None,
    log_level: LogLevelOption = LogLevel.WARNING,
) -> None:
    """Run a cluster in one process: API server, nodes without containers, and the scheduler.

    kubectl and other clients work with it as with any cluster, but no container runs. Ctrl-C stops
    it.
    """
    _refuse_conflicts(context, demo)
    # Here, so that the other commands start without them.
    from moorage.app import logs
    from moorage.app.local_cluster import SchedulerAccess, UpSettings
    from moorage.app.observations import Observations
    from moorage.demo import CLUSTER, GATES, SCHEDULER
    from moorage.embedded.hollow.pod_life import HollowSettings
    from moorage.embedded.server import ServerSettings
    from moorage.framework.kubelet_admission import find_admissions

    from .demo import run_demo
    from .inputs import EngineOptions
    from .up_cluster import (
        Plan,
        WelcomeText,
        has_cluster,
        read_cluster_file,
        read_copies,
        run_cluster,
    )

    if demo:
        nodes, config, feature_gates = str(CLUSTER), SCHEDULER, GATES
    logs.configure(logs.LogSettings(level=log_level.value))
    observations = Observations()
    options = EngineOptions(config, feature_gates, plugins, election={"leader_elect": False})
    engine = options.engine(observations)
    if not _is_given(context, "nodes") and (source or has_cluster(data_dir)):
        nodes = "0"
    cluster = read_cluster_file(nodes)
    server = ServerSettings(
        host=listen, port=port, data_dir=data_dir, coexist=options.gates["CoexistPolicy"]
    )
    hollow = HollowSettings(
        start_seconds=start_seconds,
        run_seconds=run_seconds,
        stop_seconds=stop_seconds,
        policies=find_admissions(options.registry),
        unknown=[name for name, is_on in options.gates.items() if not is_on],
    )
    settings = UpSettings(
        server=replace(server, token=token) if token else server,
        nodes=cluster.nodes,
        manifests=cluster.manifests,
        read_copies=partial(read_copies, source, with_values=with_values) if source else None,
        with_values=with_values,
        hollow=hollow,
        scheduler_access=SchedulerAccess.NONE if no_scheduler else SchedulerAccess(scheduler.value),
        kubeconfig=kubeconfig,
        scheduler_flags=options.flags.strip(),
    )
    plan = Plan(settings, engine, observations)
    if demo:
        run_demo(plan, once=once, browser=not no_browser, pace=pace)
    else:
        run_cluster(plan, WelcomeText(for_seconds, options))


def _refuse_conflicts(context: typer.Context, demo: bool) -> None:
    """Refuses flags that contradict --demo, and flags that need --demo if it is not given."""
    # Here, because it is loaded with the rest.
    from moorage.documents.errors import InputError

    given = [
        (each.name, each.opts[0])
        for each in context.command.params
        if each.name and _is_given(context, each.name)
    ]
    wrong = [flag for name, flag in given if name in (_NOT_WITH_DEMO if demo else _ONLY_WITH_DEMO)]
    if demo and context.params["scheduler"] is SchedulerLink.NONE:
        wrong.append("--scheduler none")
    if wrong:
        text = "not with --demo, which has a cluster of its own" if demo else "only with --demo"
        raise InputError(", ".join(wrong), text)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and not source.name.startswith("DEFAULT")
