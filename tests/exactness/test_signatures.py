"""Which pods are alike: as many as possible, and never two that could be decided differently."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from moorage.cluster import Cluster, Nodes, NodeView
from moorage.config import Configuration, FeatureGates, default, load_mapping
from moorage.engine import Engine
from moorage.engine.classes.signature import TOO_MANY_RULES, Signer, Unsigned
from moorage.engine.classes.statistics import Unsignable
from moorage.engine.events import Applied
from moorage.framework.nominated import filter_with_nominated
from moorage.framework.plugin import NodeFilter, Registry, Sign
from moorage.framework.points import pre_filter, score_rows
from moorage.framework.profile import Profile, known_plugins
from moorage.framework.status import PluginError
from moorage.objects.coexist import ANNOTATION
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import READ_KINDS
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import ReplicaSet, Service
from moorage.simulate.verdicts import RecordedScenario, read_scenarios
from tests.builders import cluster, node, pod
from tests.coexisting import annotated, daemon, exclusive, exclusive_daemon, static
from tests.exactness.four_ways import configuration, profile as make_profile
from tests.exactness.streams import COEXISTING, Shape, World
from tests.exactness.templates import coexisting, some_disk_use, template, variation
from tests.registered import REGISTRY
from tests.storage_builders import claiming, mounting, pv, pvc, storage_class
from tests.strategies import OWNER, REQUIRED

GOLDEN = Path(__file__).parents[1] / "golden"
PROFILE = Engine(configuration(), REGISTRY).profiles["default-scheduler"]


def are_alike(one: Pod, other: Pod, nodes: Nodes) -> bool:
    signer = Signer(PROFILE)
    signature = signer.sign(one, nodes)
    return isinstance(signature, int) and signature == signer.sign(other, nodes)


# What matters and what does not

NODES = cluster(node("a"), node("b")).nodes


def serving(**port: Any) -> Pod:
    container = {"name": "main", "ports": [{"hostPort": 80, **port}]}
    return pod(spec={"containers": [container]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pod("a"), pod("b"), id="names"),
        pytest.param(pod(spec={"priority": 1}), pod(spec={"priority": 2}), id="priorities"),
        pytest.param(pod(labels={"index": "1"}), pod(labels={"index": "2"}), id="unread labels"),
        pytest.param(pod(), mounting({"configMap": {"name": "x"}}), id="config maps"),
        pytest.param(pod(), mounting({"secret": {"secretName": "x"}}), id="secrets"),
        pytest.param(pod(), mounting({"projected": {"sources": []}}), id="projected volumes"),
        pytest.param(pod(), mounting({"emptyDir": {}}), id="empty directories"),
        pytest.param(
            serving(), serving(hostIP="0.0.0.0", protocol="TCP"), id="ports that say the same"
        ),
        pytest.param(
            pod(metadata={"annotations": {"a": "1"}}), pod(), id="annotations that nobody reads"
        ),
        pytest.param(pod(), pod(spec={"coexistPolicy": "Any"}), id="policies that say the same"),
        pytest.param(exclusive(), annotated(), id="policies, whichever way they are said"),
        pytest.param(daemon(), static(), id="exempt pods"),
    ],
)
def test_alike(one: Pod, other: Pod) -> None:
    assert are_alike(one, other, NODES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pod(cpu=1), pod(cpu=2), id="requests"),
        pytest.param(pod(), exclusive(), id="policies"),
        pytest.param(pod(), annotated(), id="policies as annotations"),
        pytest.param(
            pod(metadata={"annotations": {ANNOTATION: "Any"}}), annotated(), id="other annotations"
        ),
        pytest.param(exclusive(), exclusive_daemon(), id="daemonsets"),
        pytest.param(pod(cpu=0), pod(), id="requests of 0 and none"),
        pytest.param(serving(), serving(hostIP="10.0.0.1"), id="addresses of ports"),
        pytest.param(serving(), serving(protocol="UDP"), id="protocols of ports"),
        pytest.param(pod(), pod(namespace="shop"), id="namespaces"),
        pytest.param(
            pod(), pod(spec={"containers": [{"image": "app"}, {"image": "app"}]}), id="containers"
        ),
        pytest.param(pod(), pod(spec={"containers": [{"image": "db"}]}), id="images"),
        pytest.param(pod(), pod(spec={"tolerations": [{"operator": "Exists"}]}), id="tolerations"),
        pytest.param(pod(), pod(spec={"nodeSelector": {"disk": "ssd"}}), id="node selectors"),
        pytest.param(
            mounting({"gcePersistentDisk": {"pdName": "one"}}),
            mounting({"gcePersistentDisk": {"pdName": "two"}}),
            id="disks",
        ),
        pytest.param(
            pod(status={"containerStatuses": [{"name": "main", "resources": {"requests": {}}}]}),
            pod(
                status={
                    "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]
                }
            ),
            id="granted resources",
        ),
    ],
)
def test_not_alike(one: Pod, other: Pod) -> None:
    assert are_alike(one, one, NODES)
    assert not are_alike(one, other, NODES)


def test_pods_with_devices_are_not_signed() -> None:
    device = pod(spec={"resourceClaims": [{"name": "gpu"}]})

    assert Signer(PROFILE).sign(device, NODES) == Unsigned(
        "DynamicResources", Unsignable.UNSIGNABLE
    )


def test_claims_are_resolved() -> None:
    """Like volumes make like pods; what is bound only once a node is chosen makes none."""
    volumes = [pv(f"v{at}", claim=f"c{at}@uid-c{at}", hosts=("a",)) for at in range(2)]
    far = pv("v2", claim="c2@uid-c2", hosts=("b",))
    claims = [pvc(f"c{at}", volume=f"v{at}") for at in range(3)]
    known = cluster(node("a"), storage_class(), *volumes, far, *claims, pvc("late"))

    assert are_alike(claiming("c0"), claiming("c1"), known.nodes)
    assert not are_alike(claiming("c0"), claiming("c2"), known.nodes)
    late = Signer(PROFILE).sign(claiming("late"), known.nodes)
    assert late == Unsigned("VolumeBinding", Unsignable.UNSIGNABLE)
    known.put_pod(claiming("c0", name="runs", node="a"))
    assert not are_alike(claiming("c0"), claiming("c1"), known.nodes)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"cpu": 2}, id="requests"),
        pytest.param({"spec": {"nodeSelector": {"a": "b"}}}, id="a rule of its own"),
        pytest.param({"metadata": {"annotations": {ANNOTATION: "x"}}}, id="an annotation"),
    ],
)
def test_pods_with_claims_are_told_apart_by_all_else(other: dict[str, Any]) -> None:
    """One signer has signed the others before: what it remembers is good for like pods alone."""
    known = cluster(node("a"), storage_class())
    for name in ("c0", "c1"):
        known.put_storage(pv(f"v-{name}", claim=f"{name}@uid-{name}"))
        known.put_storage(pvc(name, volume=f"v-{name}"))
    signer, asking = Signer(PROFILE), {"cpu": 1, **other}
    first = signer.sign(claiming("c0", cpu=1), known.nodes)

    assert isinstance(first, int)
    assert first == signer.sign(claiming("c1", cpu=1), known.nodes)
    assert first != signer.sign(claiming("c1", **asking), known.nodes)
    assert first != signer.sign(pod(cpu=1), known.nodes)


def test_a_claim_is_looked_up_each_time() -> None:
    """What is remembered of a template says nothing of a volume that is in use by now."""
    claim, volume = pvc("c", volume="v"), pv("v", claim="c@uid-c")
    known = cluster(node("a"), storage_class(), volume, claim)
    signer, asks = Signer(PROFILE), claiming("c")
    before = signer.sign(asks, known.nodes)
    known.put_pod(claiming("c", name="runs", node="a"))

    assert isinstance(before, int)
    assert signer.sign(asks, known.nodes) != before


def test_a_pod_with_many_rules_is_not_signed() -> None:
    many = [{"key": f"k{at}", "operator": "Exists"} for at in range(300)]

    assert Signer(PROFILE).sign(pod(spec={"tolerations": many}), NODES) is TOO_MANY_RULES


class Ranked(NodeFilter, Sign):
    """Reads, and signs, a label that no selector reads."""

    name: ClassVar[str] = "Ranked"

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.labels.get("rank")

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return None


def test_a_label_that_only_a_plugin_reads() -> None:
    registry: Registry = {**REGISTRY, "Ranked": Ranked}
    enabled = {"multiPoint": {"enabled": [{"name": "Ranked"}]}}
    engine = Engine(configuration(make_profile(plugins=enabled), registry), registry)
    signer = Signer(engine.profiles["default-scheduler"])
    low, high = (pod(labels={"rank": rank}) for rank in ("low", "high"))

    assert signer.sign(low, NODES) != signer.sign(high, NODES)
    assert signer.sign(low, NODES) == signer.sign(low, NODES)


@pytest.mark.parametrize("kind", [Service, ReplicaSet])
def test_who_selects_a_pod_is_signed_when_they_come_and_go(kind: type[Service]) -> None:
    """The labels are read all the time, by one who selects others."""
    known = cluster(node("a"))
    other = Service(namespace="default", name="other", selector=equality({"app": "nobody"}))
    ours = kind(namespace="default", name="set", selector=equality({"app": "web"}))
    known.put_workload(other)
    signer = Signer(PROFILE)
    asks = pod("web-0", labels={"app": "web"}, metadata={"ownerReferences": [OWNER]})
    before = signer.sign(asks, known.nodes)
    known.put_workload(ours)
    during = signer.sign(asks, known.nodes)
    known.remove_workload(ours)

    assert during != before
    assert signer.sign(asks, known.nodes) == before


SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {},
            "nodeTaintsPolicy": "Honor",
        }
    ]
}


ON_SSD = {
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
                ]
            }
        }
    }
}


def test_spreading_signs_all_who_select_a_pod() -> None:
    known = cluster(node("a"))
    reads = equality({"app": "nobody", "tier": "none"})
    known.put_workload(Service(namespace="default", name="reads", selector=reads))
    asks, signer = pod(labels={"app": "web", "tier": "x"}), Signer(PROFILE)
    signed = []
    for name, selector in (("one", {"app": "web"}), ("two", {"tier": "x"})):
        service = Service(namespace="default", name=name, selector=equality(selector))
        known.put_workload(service)
        parts = signer.parts(asks, known.nodes)
        assert not isinstance(parts, Unsigned)
        signed.append(parts["PodTopologySpread"])

    assert signed[0] != signed[1]


@pytest.mark.parametrize(
    ("plugin", "one", "other"),
    [
        pytest.param(
            "PodTopologySpread",
            pod(spec=SPREAD),
            pod(spec={**SPREAD, "tolerations": [{"operator": "Exists"}]}),
            id="tolerations",
        ),
        pytest.param(
            "PodTopologySpread",
            pod(spec=SPREAD),
            pod(spec={**SPREAD, "nodeSelector": {"disk": "ssd"}}),
            id="node selectors",
        ),
        pytest.param(
            "PodTopologySpread", pod(spec=SPREAD), pod(spec={**SPREAD, **ON_SSD}), id="node terms"
        ),
        pytest.param("InterPodAffinity", pod(), pod(namespace="shop"), id="namespaces"),
    ],
)
def test_each_plugin_signs_what_it_reads(plugin: str, one: Pod, other: Pod) -> None:
    """Although others sign it as well: a profile may be without these."""
    signer = Signer(PROFILE)
    ours, theirs = signer.parts(one, NODES), signer.parts(other, NODES)

    assert not isinstance(ours, Unsigned)
    assert not isinstance(theirs, Unsigned)
    assert ours[plugin] != theirs[plugin]


# Labels that somebody begins to read

FIRST, SECOND = (
    pod(f"web-{at}", labels={"app": "web", "index": str(at)}, metadata={"ownerReferences": [OWNER]})
    for at in range(2)
)
READER = {
    "affinity": {
        "podAntiAffinity": {
            REQUIRED: [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"index": "0"}}},
            ]
        }
    }
}


def by_running_pod(known: Cluster) -> None:
    known.put_pod(pod("reader", node="a", spec=READER))


def by_assumed_pod(known: Cluster) -> None:
    known.assume(pod("reader", spec=READER), "a")


def by_nominated_pod(known: Cluster) -> None:
    known.nominate(pod("reader", spec=READER), "a")


def by_service(known: Cluster) -> None:
    selector = equality({"index": "0"})
    known.put_workload(Service(namespace="default", name="web", selector=selector))


def by_controller(known: Cluster) -> None:
    selector = equality({"index": "0"})
    known.put_workload(ReplicaSet(namespace="default", name="set", selector=selector))


@pytest.mark.parametrize(
    "begin", [by_running_pod, by_assumed_pod, by_nominated_pod, by_service, by_controller]
)
def test_an_index_matters_once_somebody_reads_it(begin: Any) -> None:
    known = cluster(node("a"))
    signer = Signer(PROFILE)
    before = signer.sign(FIRST, known.nodes)
    assert before is not None
    assert signer.sign(SECOND, known.nodes) == before

    begin(known)

    after = signer.sign(FIRST, known.nodes)
    assert isinstance(after, int)
    assert after not in (before, signer.sign(SECOND, known.nodes))


def test_an_index_is_forgotten_with_its_last_reader() -> None:
    known = cluster(node("a"))
    by_running_pod(known)
    assert not are_alike(FIRST, SECOND, known.nodes)
    known.remove_pod("default/reader")
    assert are_alike(FIRST, SECOND, known.nodes)

    by_nominated_pod(known)
    assert not are_alike(FIRST, SECOND, known.nodes)
    known.nominate(pod("reader", spec=READER), "")
    assert are_alike(FIRST, SECOND, known.nodes)


# Recorded signatures


def told_apart(one: Pod, nodes: Nodes) -> Hashable:
    """What kube-scheduler does not sign although it can change a verdict or a score.

    It lets pods in other namespaces share a signature where no plugin of its own looks at them,
    and it looks up neither what claims are bound to nor how scoring counts requests.
    """
    spec = one.spec
    return (
        one.namespace,
        one.owner,
        nodes.labels_that_matter(one),
        spec.host_ports,
        tuple(spec.scoring_requests.items()),
        len(spec.all_containers),
        spec.volumes and one.key,
    )


def load(recording: RecordedScenario) -> tuple[Engine, dict[str, Pod]]:
    scenario = recording.scenario
    known, gates = known_plugins(REGISTRY), FeatureGates.parse(scenario.feature_gates)
    if scenario.config is None:
        using = default(known, gates)
    else:
        using = load_mapping(scenario.config, known=known, gates=gates)
    engine = Engine(using, REGISTRY)
    for raw in scenario.objects:
        if raw["kind"] in READ_KINDS:
            engine.handle(Applied(from_builtins(raw["kind"], raw)), 0.0)
    pods = [each for raw in scenario.pending if isinstance(each := from_builtins("Pod", raw), Pod)]
    return engine, {each.key: each for each in pods}


def test_pods_that_kube_scheduler_signs_alike_are_alike() -> None:
    shared = 0
    for recording in read_scenarios(GOLDEN / "signatures.jsonl.gz"):
        engine, pods = load(recording)
        nodes = engine.cluster.nodes
        signers = {name: Signer(each) for name, each in engine.profiles.items()}
        steps = [step for step in recording.golden.steps if step.signature is not None]
        for one, other in combinations(steps, 2):
            first, second = pods[one.pod], pods[other.pod]
            if one.signature != other.signature or told_apart(first, nodes) != told_apart(
                second, nodes
            ):
                continue
            signer = signers[first.spec.scheduler_name]
            signature = signer.sign(first, nodes)
            assert isinstance(signature, int)
            assert signer.sign(second, nodes) == signature
            shared += 1
    assert shared > 20


@pytest.mark.parametrize("category", ["signatures", "mixed"])
def test_what_is_signed_alike_is_decided_alike_in_recorded_clusters(category: str) -> None:
    for recording in read_scenarios(GOLDEN / f"{category}.jsonl.gz"):
        engine, pods = load(recording)
        for name, profile in engine.profiles.items():
            mine = [each for each in pods.values() if each.spec.scheduler_name == name]
            assert_consistent(profile, mine, engine.cluster.nodes)


# Consistency


def assert_consistent(profile: Profile, pods: list[Pod], nodes: Nodes) -> int:
    """Pods with one signature get the same answers; tells how many there were beyond the first."""
    signer = Signer(profile)
    answers: dict[int, tuple[Pod, Any]] = {}
    repeated = 0
    for each in pods:
        signature = signer.sign(each, nodes)
        if not isinstance(signature, int):
            continue
        said = everything_said(profile, each, nodes)
        known, before = answers.setdefault(signature, (each, said))
        assert said == before, f"{each.key} is signed like {known.key}"
        repeated += known is not each
    return repeated


def everything_said(profile: Profile, asks: Pod, nodes: Nodes) -> Any:
    """Why each node is refused, by whom, and what the others score; or what went wrong."""
    try:
        prepared = pre_filter(profile, asks, nodes)
        if prepared.rejected is not None:
            return prepared.rejected, prepared.rejected_by
        filtered = filter_with_nominated(profile, asks, prepared, nodes, nodes.everything)
        refused = dict(filtered.refusals())
        scored = score_rows(profile, asks, nodes, filtered.feasible_rows)
    except PluginError as error:
        return str(error)
    by_plugin = {name: scores.tolist() for name, scores in scored.by_plugin.items()}
    return prepared.node_names, refused, filtered.feasible_rows.tolist(), by_plugin


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_what_is_signed_alike_is_decided_alike(seed: int) -> None:
    compare_templates(seed)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_exclusive_pods_that_are_signed_alike_are_decided_alike(seed: int) -> None:
    compare_templates(seed, shape=COEXISTING)


@pytest.mark.parametrize("shape", [Shape(), COEXISTING], ids=["plain", "exclusive"])
def test_many_are_signed_alike(shape: Shape) -> None:
    assert sum(compare_templates(seed, shape=shape) for seed in range(10)) > 50


def compare_templates(
    seed: int, using: Configuration | None = None, shape: Shape | None = None
) -> int:
    """Random templates, and others that differ in one thing, over a random cluster."""
    world, random = World(seed, shape or Shape()), Random(seed)
    engine = Engine(using or configuration(), REGISTRY)
    for event in world.opening():
        engine.handle(event, 0.0)
    calm = random.random() < 0.3
    templates = [template(random, f"s{at}", ("default-scheduler",), calm=calm) for at in range(3)]
    templates += [variation(random, each, f"{each.name}v", calm=calm) for each in templates * 2]
    if world.shape.coexisting:
        templates += [coexisting(random, each) for each in templates]
    if world.shape.disks:
        templates = [replace(each, annotations=some_disk_use(random)) for each in templates * 3]
    pods: list[Pod] = []
    for each in templates * 2:
        for event in world.create(each):
            if isinstance(event, Applied) and isinstance(event.object, Pod):
                pods.append(event.object)
            else:
                engine.handle(event, 0.0)

    profile = engine.profiles["default-scheduler"]
    return assert_consistent(profile, pods, engine.cluster.nodes)
