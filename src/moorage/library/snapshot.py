"""A cluster as a value, and the questions that it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from moorage.cluster import Nodes
from moorage.config import Configuration, FeatureGates, default, load, load_mapping
from moorage.config.configuration import API_VERSION, KIND
from moorage.config.kubernetes_versions import DEFAULT_VERSION, read_version
from moorage.documents.errors import InputError
from moorage.engine import Engine
from moorage.engine.cycle import Found, decide
from moorage.engine.events import Applied
from moorage.engine.explain import Explanation, NoSuchNode
from moorage.engine.registry import registry
from moorage.framework.attempt import Failed, Scored
from moorage.framework.plugin import Plugin
from moorage.framework.profile import known_plugins
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import READ_KINDS, Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.simulate.outlook import Outlook, WaitingPods, explain_running
from moorage.simulate.pod_fit import Fit, Question, fit as place_copies
from moorage.simulate.rescheduling import Packing, reschedule as place_anew
from moorage.simulate.simulation import simulate as run_simulation
from moorage.simulate.traces.arrivals import ArrivalTrace
from moorage.simulate.traces.figures import TraceFigures, run_trace as run_arrivals
from moorage.simulate.transcript import Transcript
from moorage.world import Scene
from moorage.world.claim_templates import ClaimTemplates

from .changed_clusters import drain_nodes
from .summary import describe, summarize_html
from .tables import Table, node_rows, pod_rows

#: A KubeSchedulerConfiguration: a file, its content as a mapping, or None for the default one.
Config = str | Path | Mapping[str, Any] | None

#: A pod of the cluster by NAMESPACE/NAME, or the manifest of a new one.
AnyPod = str | Mapping[str, Any] | Pod


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return f"ClusterSnapshot({describe(self.nodes, self.pods)})"

    def _repr_html_(self) -> str:
        """Returns a summary, for notebooks."""
        return summarize_html(self.nodes, self.pods, self.emulation_version, self.notes)

    # Other clusters

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
        """Returns the same cluster with more objects, given as manifests.

        Raises InputError for a kind that scheduling does not read.
        """
        for each in manifests:
            if each.get("kind") not in READ_KINDS:
                raise InputError(f"kind {each.get('kind')}: is not read")
        more = tuple(from_builtins(each["kind"], dict(each)) for each in manifests)
        return replace(self, objects=(*self.objects, *more))

    def add_nodes(self, node: str | Mapping[str, Any] | Node, count: int = 1) -> ClusterSnapshot:
        """Returns the same cluster with more nodes: copies of a node or of a manifest.

        A node of the cluster is given by its name; its devices are not copied. Names of copies end
        in a number.
        """
        shape = self._find_node(node) if isinstance(node, str) else _decode(Node, node)
        scene = Scene(nodes=self.nodes).extend(shape, count)
        return replace(self, objects=(*self.objects, *scene.nodes[len(self.nodes) :]))

    def drain(self, *nodes: str) -> ClusterSnapshot:
        """Returns the same cluster with nodes cordoned and their pods waiting.

        Pods of DaemonSets and static pods stay. Budgets that forbid the drain are among the notes.
        """
        objects, notes = drain_nodes(self.objects, nodes)
        return replace(self, objects=objects, notes=(*self.notes, *notes))

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

    def explain(self, pod: AnyPod, node: str = "") -> Explanation:
        """Says why a pod waits, why it goes to its node, and what would help.

        The pod is one of the cluster (NAMESPACE/NAME), or a manifest of a new one.
        """
        cluster, asked = self._with_claims(pod)
        scene = Scene.of(cluster.objects)
        if not asked.node_name and all(each.uid != asked.uid for each in scene.waiting):
            scene = replace(scene, waiting=(*scene.waiting, asked))
        try:
            if asked.node_name:
                return explain_running(self.make_engine(), scene, asked, node)
            return Outlook.of(self.make_engine, scene).explain(asked, node)
        except NoSuchNode:
            raise InputError(f"node {node}", "there is no such node") from None

    def explain_all(self) -> list[WaitingPods]:
        """Explains the pods that fit nowhere, or only by evicting others, the largest group first.

        Pods of one owner and one template have one explanation, that of the first of them. Pods of
        schedulers that the configuration does not have are left out.
        """
        outlook = Outlook.of(self.make_engine, Scene.of(self.objects))
        return outlook.explain_by_owner(pod for pod in outlook.served() if not outlook.fits(pod))

    def fit(self, pod: AnyPod, count: int = 1) -> Fit:
        """Places copies of a pod, one after the other, without evicting any.

        The pod is one of the cluster (NAMESPACE/NAME), or a manifest of a new one.
        """
        cluster, template = self._with_claims(pod)
        return place_copies(
            self.make_engine(), Scene.of(cluster.objects), Question(template, count)
        )

    def place(self, pod: AnyPod) -> str:
        """Returns the node that a pod goes to without evictions; empty if there is none.

        The pod is one of the cluster (NAMESPACE/NAME), or a manifest of a new one.
        """
        cluster, asked = self._with_claims(pod)
        outcome, nodes = cluster._decide(asked)
        return "" if isinstance(outcome, Failed) else nodes.name(outcome.row)

    def compare(self, other: ClusterSnapshot) -> Table:
        """Returns a row per pending pod that goes elsewhere in another cluster or configuration.

        `node` is its node here, `other` its node there; empty if it stays pending.
        """
        here, there = _list_places(self.simulate()), _list_places(other.simulate())
        return Table(
            {"pod": pod, "node": here.get(pod, ""), "other": there.get(pod, "")}
            for pod in {**here, **there}
            if here.get(pod, "") != there.get(pod, "")
        )

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

    # Tables

    def node_table(self) -> Table:
        """Returns a row per node: zone, labels, and what is allocatable and requested.

        Amounts are integers: cpu in thousandths of a core, memory in bytes. A label that a node
        does not have is empty.
        """
        running = [pod for pod in self.pods if pod.node_name and not pod.is_finished]
        return Table(node_rows(self.nodes, running))

    def pod_table(self) -> Table:
        """Returns a row per pod: phase, node, owner, requests and labels, as in `node_table`."""
        return Table(pod_rows(self.nodes, self.pods))

    def score_table(self, pod: AnyPod) -> Table:
        """Returns a row per node that a pod fits on, the best first, with the weighted scores."""
        cluster, asked = self._with_claims(pod)
        outcome, nodes = cluster._decide(asked)
        if isinstance(outcome, Failed):
            return Table()
        # A pod that fits on one node only is not scored.
        scored = outcome.scored or Scored(
            np.array([outcome.row], np.intp), {}, np.zeros(1, np.int64)
        )
        rows: list[dict[str, Any]] = [
            {
                "node": nodes.name(int(row)),
                "total": int(scored.totals[at]),
                **{name: int(scores[at]) for name, scores in scored.by_plugin.items()},
            }
            for at, row in enumerate(scored.rows)
        ]
        return Table(sorted(rows, key=lambda each: (-each["total"], each["node"])))

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

    def _with_claims(self, pod: AnyPod) -> tuple[ClusterSnapshot, Pod]:
        """Returns the cluster with the claims that a pod still needs, and the pod."""
        asked, claims = self.claim_templates.make_claims(self._read_pod(pod))
        return replace(self, objects=(*self.objects, *claims)), asked

    def _read_pod(self, pod: AnyPod) -> Pod:
        """Returns the pod of that name, or the pod that is given."""
        if not isinstance(pod, str):
            return _decode(Pod, pod)
        for each in self.pods:
            if each.key == pod:
                return each
        raise _not_found("pod", pod, [each.key for each in self.pods])

    def _find_node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise _not_found("node", name, [each.name for each in self.nodes])

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


def _not_found(kind: str, name: str, known: Sequence[str]) -> InputError:
    text = f"not found among {len(known)} {kind}s"
    likely = get_close_matches(name, known, n=1)
    return InputError(f"{kind} {name}", f"{text}; did you mean {likely[0]}?" if likely else text)


T = TypeVar("T", Pod, Node)


def _decode(kind: type[T], given: Mapping[str, Any] | T) -> T:
    """Returns the object that is given, or that a manifest describes."""
    if isinstance(given, kind):
        return given
    if isinstance(given, Mapping) and given.get("kind", kind.__name__) == kind.__name__:
        found = from_builtins(kind.__name__, dict(given))
        assert isinstance(found, kind)
        return found
    what = given.get("kind") if isinstance(given, Mapping) else type(given).__name__
    raise InputError(f"{what}: must be the name of a {kind.__name__} or its manifest")
