r"""Moorage as a library: a cluster as a value, and questions about it.

    import moorage

    cluster = moorage.read_cluster("dump.yaml")
    print(cluster.explain("shop/web-1").message)

These names are stable: `read_cluster`, `read_live_cluster`, `read_trace`, `ClusterSnapshot` and
what its methods take and return. Everything else may change with any version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from moorage.cluster import Nodes
from moorage.config import Configuration, FeatureGates, default, load, load_mapping
from moorage.config.configuration import API_VERSION, KIND
from moorage.config.kubernetes_versions import DEFAULT_VERSION, read_server_version, read_version
from moorage.documents.errors import InputError
from moorage.engine import Engine
from moorage.engine.cycle import Found, decide
from moorage.engine.events import Applied
from moorage.engine.explain import Explanation, explain as explain_pod
from moorage.engine.registry import registry
from moorage.framework.attempt import Failed, Scored
from moorage.framework.plugin import Plugin
from moorage.framework.profile import known_plugins
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import READ_KINDS, Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.record.last_state import read_last_state
from moorage.record.reader import is_recording
from moorage.simulate.loading import Input, load as load_manifests
from moorage.simulate.pod_fit import Fit, Question, fit as place_copies
from moorage.simulate.rescheduling import Packing, reschedule as place_anew
from moorage.simulate.simulation import simulate as run_simulation
from moorage.simulate.traces import read_trace as read_arrivals
from moorage.simulate.traces.arrivals import ArrivalTrace
from moorage.simulate.traces.figures import TraceFigures, run_trace as run_arrivals
from moorage.simulate.transcript import Transcript
from moorage.world import Scene
from moorage.world.claim_templates import ClaimTemplates

#: A KubeSchedulerConfiguration: a file, its content as a mapping, or None for the default one.
Config = str | Path | Mapping[str, Any] | None


def read_cluster(*paths: str | Path) -> ClusterSnapshot:
    """Reads manifests, a dump such as `kubectl get nodes,pods -A -o yaml` prints, or a recording.

    From a recording, it reads the cluster at its end. Raises InputError, which names file, object
    and field.
    """
    recordings = [Path(path) for path in paths if is_recording(Path(path))]
    others = [str(path) for path in paths if Path(path) not in recordings]
    found = load_manifests(others) if others or not paths else Input(())
    recorded = (
        [from_builtins(item["kind"], item) for _, item in read_last_state(recordings)]
        if recordings
        else []
    )
    return ClusterSnapshot(
        (*found.objects, *recorded), notes=found.notes, claim_templates=found.claim_templates
    )


def read_live_cluster(
    kubeconfig: str | Path | None = None, context: str | None = None
) -> ClusterSnapshot:
    """Reads what scheduling needs from an API server, which is found as `kubectl` finds it.

    Raises ClientError or InputError. It also works in a notebook, which runs an event loop already.
    """
    # Here, because the client takes long to load.
    from moorage.client import Api, ApiError, connect
    from moorage.client.listing import list_kinds

    notes: list[str] = []

    async def read() -> tuple[list[Object], str]:
        connection = await connect(None if kubeconfig is None else str(kubeconfig), context, None)
        async with Api(connection) as api:
            version = DEFAULT_VERSION
            # A user who may not read the version may still list.
            with suppress(ApiError):
                version = read_server_version(await api.get("/version"))
            objects = await list_kinds(
                api, sorted(READ_KINDS), lambda kind, key, why: notes.append(f"{kind} {key}: {why}")
            )
            return objects, version.name

    with ThreadPoolExecutor(1) as pool:
        objects, version = pool.submit(lambda: asyncio.run(read())).result()
    return ClusterSnapshot(tuple(objects), emulation_version=version, notes=tuple(notes))


def read_trace(path: str | Path) -> ArrivalTrace:
    """Reads which pods come and go: a recording, the folder of OpenB, or a CSV file."""
    return read_arrivals(Path(path))


@dataclass(frozen=True)
class ClusterSnapshot:
    """The objects of a cluster, and the configuration by which questions about them are answered.

    It never changes: each answer comes from a new engine.
    """

    objects: tuple[Object, ...]
    config: Config = None
    plugins: tuple[type[Plugin], ...] = ()
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    emulation_version: str = DEFAULT_VERSION.name
    #: What was left out when it was read, and why.
    notes: tuple[str, ...] = ()
    #: Of what claims of new pods are made.
    claim_templates: ClaimTemplates = field(default_factory=ClaimTemplates)

    def configure(
        self,
        config: Config = None,
        plugins: Sequence[type[Plugin]] = (),
        feature_gates: Mapping[str, bool] | None = None,
        emulation_version: str = "",
    ) -> ClusterSnapshot:
        """Returns the same cluster with another configuration.

        Without one, all plugins are enabled.

        The version is that of kube-scheduler whose decisions are followed, 1.36 or 1.37. Without a
        version it stays as it is: that of the API server if the cluster was read from one.
        """
        return replace(
            self,
            config=config,
            plugins=tuple(plugins),
            feature_gates=feature_gates or {},
            emulation_version=emulation_version or self.emulation_version,
        )

    def add(self, *manifests: Mapping[str, Any]) -> ClusterSnapshot:
        """Returns the same cluster with more objects, given as manifests."""
        more = tuple(from_builtins(each["kind"], dict(each)) for each in manifests)
        return replace(self, objects=(*self.objects, *more))

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(item for item in self.objects if isinstance(item, Node))

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(item for item in self.objects if isinstance(item, Pod))

    # Questions

    def simulate(self) -> Transcript:
        """Schedules the pending pods, as if every action succeeded at once."""
        return run_simulation(self.make_engine(), self.objects)

    def explain(self, pod: str | Pod, node: str = "") -> Explanation:
        """Says why a pod (NAMESPACE/NAME) waits, why it goes to its node, and what would help."""
        asked = self._find(pod) if isinstance(pod, str) else pod
        engine, waiting = self._take_off(asked)
        found = explain_pod(engine.decider, waiting, node)
        return msgspec.structs.replace(found, running_on=asked.node_name)

    def fit(self, pod: Mapping[str, Any] | Pod, count: int = 1) -> Fit:
        """Places copies of a pod, one after the other, without evicting any."""
        template = pod if isinstance(pod, Pod) else from_builtins("Pod", dict(pod))
        assert isinstance(template, Pod)
        template, claims = self.claim_templates.make_claims(template)
        question = Question(template, count, claims)
        return place_copies(self.make_engine(), Scene.of(self.objects), question)

    def place(self, pod: str | Mapping[str, Any] | Pod) -> str:
        """Returns the node that a pod goes to without evictions; empty if there is none.

        The pod is one of the cluster (NAMESPACE/NAME), or a manifest of a new one.
        """
        new = from_builtins("Pod", dict(pod)) if isinstance(pod, Mapping) else pod
        asked = self._find(new) if isinstance(new, str) else new
        assert isinstance(asked, Pod)
        asked, claims = self.claim_templates.make_claims(asked)
        outcome, nodes = replace(self, objects=(*self.objects, *claims))._decide(asked)
        return "" if isinstance(outcome, Failed) else nodes.name(outcome.row)

    def compare(self, other: ClusterSnapshot) -> list[dict[str, Any]]:
        """Returns a row per pending pod that goes elsewhere in another cluster or configuration.

        `node` is its node here, `other` its node there; empty if it stays pending.
        """
        here, there = _list_places(self.simulate()), _list_places(other.simulate())
        return [
            {"pod": pod, "node": here.get(pod, ""), "other": there.get(pod, "")}
            for pod in {**here, **there}
            if here.get(pod, "") != there.get(pod, "")
        ]

    def reschedule(self, name: str = "anew") -> Packing:
        """Places all running pods anew, and says how full nodes would be."""
        return place_anew(name, self.make_engine(), Scene.of(self.objects))

    def run_trace(self, trace: ArrivalTrace, name: str = "trace") -> TraceFigures:
        """Lets pods come and go in virtual time, on this cluster or, if empty, on the trace's.

        To compare configurations, run it for the same cluster configured in two ways.
        """
        chosen = trace.on(self.objects) if self.objects else trace
        return run_arrivals(name, self.make_engine(), chosen)

    def make_engine(self) -> Engine:
        """Makes a new engine for this cluster without its objects, for your own experiments."""
        plugins = registry(self.plugins)
        return Engine(self._configuration(plugins), plugins)

    def node_table(self) -> list[dict[str, Any]]:
        """Returns a row per node, for pandas.DataFrame or pyarrow.Table.from_pylist."""
        engine = self.make_engine()
        for item in self.objects:
            engine.handle(Applied(item), 0.0)
        nodes = engine.cluster.nodes
        return [_node_row(nodes.node(row), nodes.pods(row).values()) for row in nodes.rows.tolist()]

    def pod_table(self) -> list[dict[str, Any]]:
        """Returns a row per pod, for the same libraries."""
        return [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "node": pod.node_name,
                "scheduler": pod.spec.scheduler_name,
                "priority": pod.priority,
                "owner": pod.owner.name if pod.owner is not None else "",
                **dict(pod.requests),
            }
            for pod in self.pods
        ]

    def score_table(self, pod: str | Pod) -> list[dict[str, Any]]:
        """Returns a row per node that a pod fits on, the best first, with the weighted scores."""
        outcome, nodes = self._decide(self._find(pod) if isinstance(pod, str) else pod)
        if isinstance(outcome, Failed):
            return []
        # A pod that fits on one node only is not scored.
        scored = outcome.scored or Scored(
            np.array([outcome.row], np.intp), {}, np.zeros(1, np.int64)
        )
        rows = [
            {
                "node": nodes.name(int(row)),
                "total": int(scored.totals[at]),
                **{name: int(scores[at]) for name, scores in scored.by_plugin.items()},
            }
            for at, row in enumerate(scored.rows)
        ]
        return sorted(rows, key=lambda each: (-each["total"], each["node"]))

    def _decide(self, asked: Pod) -> tuple[Found | Failed, Nodes]:
        """Decides a pod as if it waited; returns the decision and the nodes."""
        engine, waiting = self._take_off(asked)
        profile = engine.profiles.get(waiting.spec.scheduler_name)
        if profile is None:
            raise InputError(f"pod {asked.key}", f"no profile {waiting.spec.scheduler_name!r}")
        return decide(profile, waiting, engine.cluster.nodes), engine.cluster.nodes

    def _take_off(self, asked: Pod) -> tuple[Engine, Pod]:
        """Returns an engine with everything but one running pod, and that pod as a waiting one."""
        engine = self.make_engine()
        for item in self.objects:
            if not (isinstance(item, Pod) and item.uid == asked.uid and asked.node_name):
                engine.handle(Applied(item), 0.0)
        return engine, msgspec.structs.replace(asked, node_name="")

    def _find(self, key: str) -> Pod:
        for pod in self.pods:
            if pod.key == key:
                return pod
        raise InputError(f"pod {key}", f"not found among {len(self.pods)} pods")

    def _configuration(self, plugins: Mapping[str, type[Plugin]]) -> Configuration:
        known = known_plugins(plugins)
        version = read_version(self.emulation_version, "emulation_version")
        gates = FeatureGates.parse(self.feature_gates, version=version)
        if isinstance(self.config, str | Path):
            path = Path(self.config)
            return load(path.read_bytes(), known=known, source=str(path), gates=gates)
        if self.config is not None:
            return load_mapping(self.config, known=known, gates=gates)
        if not self.plugins:
            return default(known, gates)
        enabled = [{"name": plugin.name} for plugin in self.plugins]
        profiles = [{"plugins": {"multiPoint": {"enabled": enabled}}}]
        raw = {"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}
        return load_mapping(raw, known=known, gates=gates)


def _list_places(transcript: Transcript) -> dict[str, str]:
    """Returns where the pending pods go, by namespace and name."""
    return {each.pod.key: each.node for each in transcript.placed}


def _node_row(node: Node, pods: Any) -> dict[str, Any]:
    used: dict[str, int] = {}
    count = 0
    for pod in pods:
        count += 1
        for name, amount in pod.requests:
            used[name] = used.get(name, 0) + amount
    allocatable = dict(node.allocatable)
    return {
        "name": node.name,
        "unschedulable": node.unschedulable,
        "pods": count,
        **{f"allocatable.{name}": amount for name, amount in allocatable.items()},
        **{f"requested.{name}": used.get(name, 0) for name in allocatable if name != "pods"},
    }
