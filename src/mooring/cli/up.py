"""`mooring up`: a whole cluster to play with, in one process."""

from __future__ import annotations

from typing import Any

import typer

from . import up_options as flags
from .options import FeatureGatesOption, LogLevel, PluginsOption
from .up_options import Scheduling

# The cluster of the demo is its own: on another one its promises would not hold.
_NOT_WITH_DEMO = (
    "nodes",
    "config",
    "data_dir",
    "feature_gates",
    "plugins",
    "no_scheduler",
    "for_seconds",
)
_ONLY_WITH_DEMO = ("once", "no_browser", "pace")


def up(  # noqa: PLR0913 - one for each flag
    context: typer.Context,
    nodes: flags.NodesOption = "10",
    kubeconfig: flags.KubeconfigOption = None,
    for_seconds: flags.ForOption = None,
    demo: flags.DemoOption = False,
    once: flags.OnceOption = False,
    no_browser: flags.NoBrowserOption = False,
    pace: flags.PaceOption = None,
    listen: flags.ListenOption = "127.0.0.1",
    port: flags.PortOption = 0,
    token: flags.TokenOption = "",
    data_dir: flags.DataDirOption = None,
    run_seconds: flags.RunSecondsOption = 10.0,
    start_seconds: flags.StartSecondsOption = 0.0,
    stop_seconds: flags.StopSecondsOption = 1.0,
    scheduler: flags.SchedulerOption = Scheduling.DIRECT,
    no_scheduler: flags.NoSchedulerOption = False,
    config: flags.ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginsOption = None,
    log_level: flags.LogLevelOption = LogLevel.WARNING,
) -> None:
    """Run a cluster in one process: API server, nodes without containers, and the scheduler.

    Everything but the containers is real: kubectl and other clients work. Stops with Ctrl-C.
    """
    _refuse_conflicts(context, demo)
    # Here, so that the other commands start without them.
    from mooring.app import logs
    from mooring.app.observations import Observations
    from mooring.app.up import Reach, UpSettings
    from mooring.config import FeatureGates
    from mooring.demo import CLUSTER, SCHEDULER
    from mooring.embedded.hollow.settings import HollowSettings
    from mooring.embedded.settings import Settings

    from .cluster_file import read_cluster
    from .scheduler import Deciding
    from .up_demo import run_demo
    from .up_running import Plain, Plan, run

    if demo:
        nodes, config = str(CLUSTER), SCHEDULER
    logs.configure(logs.LogSettings(level=log_level.value))
    observations = Observations()
    deciding = Deciding(config, feature_gates, plugins, election={"leader_elect": False})
    chosen = deciding.engine(observations)
    coexist = FeatureGates.from_text(feature_gates).enabled("CoexistPolicy")
    cluster = read_cluster(nodes)
    server: dict[str, Any] = {"token": token} if token else {}
    settings = UpSettings(
        server=Settings(host=listen, port=port, data_dir=data_dir, coexist=coexist, **server),
        nodes=cluster.nodes,
        manifests=cluster.manifests,
        hollow=HollowSettings(
            start_seconds=start_seconds,
            run_seconds=run_seconds,
            stop_seconds=stop_seconds,
            coexist=coexist,
        ),
        reach=Reach.NONE if no_scheduler else Reach(scheduler.value),
        kubeconfig=kubeconfig,
    )
    plan = Plan(settings, chosen, observations)
    if demo:
        run_demo(plan, once=once, browser=not no_browser, pace=pace)
    else:
        run(plan, Plain(for_seconds))


def _refuse_conflicts(context: typer.Context, demo: bool) -> None:
    """Refuses flags that mean nothing beside the others."""
    # Here, because it is loaded with the rest.
    from mooring.simulate.problems import InputError

    given = [
        (each.name, each.opts[0])
        for each in context.command.params
        if each.name and _is_given(context, each.name)
    ]
    wrong = [flag for name, flag in given if name in (_NOT_WITH_DEMO if demo else _ONLY_WITH_DEMO)]
    if demo and context.params["scheduler"] is Scheduling.NONE:
        wrong.append("--scheduler none")
    if wrong:
        told = "not with --demo, which has a cluster of its own" if demo else "only with --demo"
        raise InputError(", ".join(wrong), told)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and not source.name.startswith("DEFAULT")
