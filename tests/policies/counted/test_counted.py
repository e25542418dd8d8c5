"""CountedResources and CountedPools: what a configuration alone makes them count and reject."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.cluster.extended.resources import extended_figures
from moorage.config import ConfigError, load_mapping
from moorage.engine.actions import Report
from moorage.engine.classes.statistics import DecisionPath
from moorage.engine.explain import explain
from moorage.framework.profile import known_plugins
from moorage.objects.custom import CustomKind, CustomObject
from moorage.objects.pod import Pod
from moorage.testing import Driver, conditions, evictions, make_engine
from moorage_policies.counted.counted_pools import CountedPools
from moorage_policies.counted.counted_resources import CountedResources
from tests.builders import node, pod
from tests.extended_fakes import custom
from tests.registered import REGISTRY

SLOTS = CustomKind("example.com", "v1", "NodeSlots", "nodeslots")
CONFIG_MAP = CustomKind("", "v1", "ConfigMap", "configmaps", namespaced=True)
TOLD = {
    "apiVersion": "example.com/v1",
    "kind": "NodeSlots",
    "plural": "nodeslots",
    "amount": "status.free",
}
MAP = {"namespace": "default", "name": "slots"}


def resource(capacity: dict[str, Any], **more: Any) -> dict[str, Any]:
    asks = {} if "podResource" in more else {"podAnnotation": "slots"}
    return {"name": "slots", "capacity": capacity, **asks, **more}


def driver(*resources: dict[str, Any], pools: tuple[dict[str, Any], ...] = ()) -> Driver:
    enabled = [{"name": "CountedResources", "weight": 9}, {"name": "CountedPools"}]
    config = [
        {"name": "CountedResources", "args": {"resources": resources}},
        {"name": "CountedPools", "args": {"pools": pools}},
        {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/slots"]}},
    ]
    profile = {"plugins": {"multiPoint": {"enabled": enabled}}, "pluginConfig": config}
    return Driver(make_engine(profiles=[profile]))


def why(driven: Driver, name: str) -> str:
    """The last message of a pod that waits."""
    return conditions(driven.story)[name].message


def slots(name: str, free: Any, **spec: Any) -> CustomObject:
    return custom(SLOTS, name, spec={"nodeName": name, **spec}, status={"free": free})


def config_map(version: str = "1", **data: str) -> CustomObject:
    meta = {"namespace": "default", "name": "slots", "resourceVersion": version}
    return custom(CONFIG_MAP, "", metadata=meta, data=data)


def asking(name: str, count: Any = 1, **given: Any) -> Pod:
    return pod(name, metadata={"annotations": {"slots": str(count)}}, **given)


def requesting(name: str, count: int) -> Pod:
    amounts = {"example.com/slots": str(count)}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    return pod(name, spec={"containers": [container]})


@pytest.mark.parametrize(
    ("capacity", "told"),
    [
        pytest.param({"nodeLabel": "slots"}, [node("a", labels={"slots": "3"})], id="label"),
        pytest.param(
            {"nodeAnnotation": "slots"},
            [replace(node("a"), annotations={"slots": "3"})],
            id="annotation",
        ),
        pytest.param({"object": TOLD}, [node("a"), slots("a", 3)], id="object"),
        pytest.param({"object": TOLD}, [slots("a", "3"), node("a")], id="object before its node"),
        pytest.param(
            {"object": {**TOLD, "node": "metadata.name"}}, [node("a"), slots("a", 3)], id="own name"
        ),
        pytest.param({"configMap": MAP}, [node("a"), config_map(a="3", b="9")], id="config map"),
    ],
)
def test_a_node_is_filled_and_no_more(capacity: dict[str, Any], told: list[Any]) -> None:
    driven = driver(resource(capacity))
    driven.apply(*told, node("unknown"))
    driven.apply(asking("first", 2), asking("second", 2), asking("third"), pod("other"))
    driven.settle()

    assert {name: driven.node_of(name) for name in ("first", "second", "third")} == {
        "first": "a",
        "second": "",
        "third": "a",
    }
    assert driven.node_of("other")
    assert "1 Insufficient slots, 1 node(s) of which slots is not known." in why(driven, "second")
    figures = extended_figures(driven.engine.cluster.extended)["slots"]
    assert figures["a"] == {"capacity": 3, "used": 3, "old": 0}


def test_what_is_told_changes_and_wakes() -> None:
    driven = driver(resource({"nodeLabel": "slots"}))
    driven.apply(node("a", labels={"slots": "1"}), asking("large", 2))
    driven.settle()
    assert not driven.node_of("large")

    driven.apply(node("a", labels={"slots": "2"}))
    driven.now += 60
    driven.settle()

    assert driven.node_of("large") == "a"


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        pytest.param(node("a", labels={"slots": "many"}), 2, id="unreadable: what was known stays"),
        pytest.param(node("a"), None, id="the label is gone"),
    ],
)
def test_a_label_that_goes_wrong(changed: Any, left: int | None) -> None:
    driven = driver(resource({"nodeLabel": "slots"}))
    driven.apply(node("a", labels={"slots": "2"}), changed)
    driven.settle()

    held = driven.engine.cluster.extended.get("slots", "a")
    assert (None if held is None else held.figures()["capacity"]) == left
    reports = [each.message for each in driven.story if isinstance(each, Report)]
    expected = ['Node a: label slots: must be a quantity, got "many"'] if left else []
    assert reports == expected


def test_one_bad_line_of_a_config_map_spoils_no_other() -> None:
    driven = driver(resource({"configMap": MAP}))
    driven.apply(node("a"), node("b"), config_map(a="1", b="2"))
    driven.apply(config_map("2", a="x", b="3"))
    driven.settle()

    figures = extended_figures(driven.engine.cluster.extended)["slots"]
    assert (figures["a"]["capacity"], figures["b"]["capacity"]) == (1, 3)
    reports = [each.message for each in driven.story if isinstance(each, Report)]
    assert reports == ['ConfigMap default/slots: data.a: must be a quantity, got "x"']
    driven.remove(config_map("2", a="x", b="3"))
    assert extended_figures(driven.engine.cluster.extended)["slots"] == {}


def test_requests_of_containers_count() -> None:
    driven = driver(resource({"nodeLabel": "slots"}, podResource="example.com/slots"))
    driven.apply(node("a", labels={"slots": "3"}), requesting("one", 2), requesting("two", 2))
    driven.settle()

    assert (driven.node_of("one"), driven.node_of("two")) == ("a", "")


@pytest.mark.parametrize(
    ("scoring", "chosen"), [("LeastAllocated", "large"), ("MostAllocated", "small")]
)
def test_scoring(scoring: str, chosen: str) -> None:
    driven = driver(resource({"nodeLabel": "slots"}, scoring=scoring))
    driven.apply(node("small", labels={"slots": "2"}), node("large", labels={"slots": "9"}))
    driven.apply(asking("p"))
    driven.settle()

    assert driven.node_of("p") == chosen


def test_one_that_does_not_filter_only_prefers() -> None:
    driven = driver(resource({"nodeLabel": "slots"}, filter=False))
    driven.apply(node("none"), node("some", labels={"slots": "4"}))
    driven.apply(asking("first"), asking("second", 9))
    driven.settle()

    assert driven.node_of("first") == "some"
    assert driven.node_of("second")


def test_telemetry_that_is_too_old_no_longer_counts() -> None:
    driven = driver(resource({"object": {**TOLD, "maxAge": "60s"}}))
    driven.apply(node("a"), slots("a", 9), asking("early"))
    driven.settle()
    driven.now += 59
    driven.apply(slots("a", 9), asking("later"))
    driven.settle()
    driven.now += 59
    driven.apply(asking("in-time"))
    driven.settle()
    driven.now += 2
    driven.apply(asking("too-late"))
    driven.settle()

    assert all(driven.node_of(name) == "a" for name in ("early", "later", "in-time"))
    assert "1 node(s) of which slots was reported too long ago." in why(driven, "too-late")
    driven.apply(slots("a", 9))
    driven.now += 10
    driven.settle()
    assert driven.node_of("too-late") == "a"


def test_figures_tell_of_telemetry_that_is_too_old_though_nothing_is_decided() -> None:
    driven = driver(resource({"object": {**TOLD, "maxAge": "60s"}}))
    driven.apply(node("a"), slots("a", 9))
    driven.settle()
    due = driven.engine.next_step(driven.now)

    assert due == driven.now + 60
    assert driven.engine.step(due) == []
    found = extended_figures(driven.engine.cluster.extended)
    assert found["slots"]["a"]["old"] == 1
    assert driven.engine.next_step(due) is None


@pytest.mark.parametrize("capacity", [{"configMap": {**MAP, "key": "all"}}, {"object": TOLD}])
def test_a_pool_is_for_the_whole_cluster(capacity: dict[str, Any]) -> None:
    if "object" in capacity:
        capacity = {"object": {**TOLD, "name": "all"}}
    told = config_map(all="3") if "configMap" in capacity else slots("all", 3)
    driven = driver(pools=(resource(capacity),))
    driven.apply(node("a"), node("b"), asking("runs", 1, node="b"), told)
    driven.apply(asking("large", 4), asking("fits", 2), asking("late", 1))
    driven.settle()

    assert driven.node_of("fits")
    assert not driven.node_of("late")
    assert "2 the pool slots has 0 of 3 left." in why(driven, "late")
    assert "2 Preemption is not helpful" in why(driven, "large")
    driven.remove(asking("runs", 1, node="b"))
    driven.now += 60
    driven.settle()
    assert driven.node_of("late")


def test_like_pods_share_answers_and_take_no_more_than_there_is() -> None:
    pool = {**resource({"configMap": {**MAP, "key": "all"}}, podAnnotation="pool"), "name": "pool"}
    driven = driver(resource({"nodeLabel": "slots"}), pools=(pool,))
    driven.apply(*(node(name, labels={"slots": "3"}) for name in "abc"), config_map(all="3"))
    driven.apply(*(asking(f"slots-{at}") for at in range(12)))
    driven.apply(*(pod(f"pool-{at}", metadata={"annotations": {"pool": "1"}}) for at in range(5)))
    driven.settle()

    placed = [each.name for each in driven.engine.cluster.pods.values()]
    assert sum(name.startswith("slots") for name in placed) == 9
    assert sum(name.startswith("pool") for name in placed) == 3
    (classes,) = driven.engine.classes.values()
    assert classes.statistics.paths[DecisionPath.BATCH] >= 7


def test_each_object_is_watched_once() -> None:
    """Who follows all objects of a kind, and who follows one of them, share a watch."""
    one = {**resource({"object": {**TOLD, "name": "all"}}), "name": "pool"}
    both = driver(resource({"object": TOLD}), pools=(one,)).engine.handles.kinds
    alone = driver(pools=(one,)).engine.handles.kinds

    assert [kind.only for kind in both] == [None]
    assert [kind.listing for kind in alone] == [
        ("/apis/example.com/v1/nodeslots", {"fieldSelector": "metadata.name=all"})
    ]


def test_evicting_frees_what_a_pool_lacks() -> None:
    driven = driver(pools=(resource({"configMap": {**MAP, "key": "all"}}),))
    driven.apply(node("a"), node("b"), config_map(all="2"))
    driven.apply(asking("low", 2, node="a", spec={"priority": 0}))
    driven.apply(asking("high", 1, spec={"priority": 10}))
    driven.settle()

    assert evictions(driven.story) == ["low"]


def test_a_pool_that_nobody_tells_of() -> None:
    driven = driver(pools=(resource({"configMap": {**MAP, "key": "all"}}),))
    driven.apply(node("a"), asking("p"), pod("other"))
    driven.settle()

    assert "1 the pool slots is not known." in why(driven, "p")
    assert driven.node_of("other") == "a"


@pytest.mark.parametrize(
    ("asks", "remedy"),
    [(3, "its annotation slots were 2"), ("many", "it had no annotation slots")],
)
def test_explain_says_what_would_help(asks: Any, remedy: str) -> None:
    driven = driver(resource({"nodeLabel": "slots"}))
    driven.apply(node("a", labels={"slots": "2"}))
    found = explain(driven.engine.decider, asking("p", asks))

    assert remedy in [each.remedy for each in found.suggestions]


def test_an_annotation_that_cannot_be_read_is_named() -> None:
    driven = driver(resource({"nodeLabel": "slots"}), pools=())
    driven.apply(node("a", labels={"slots": "1"}), asking("p", "many"))
    driven.settle()

    assert 'annotation slots: must be a quantity, got "many"' in why(driven, "p")


NO_SOURCE = "must have one of nodeLabel, nodeAnnotation, configMap and object"


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    [
        (CountedResources, {"resources": [resource({})]}, f"resources[0].capacity: {NO_SOURCE}"),
        (
            CountedResources,
            {"resources": [{"name": "x", "capacity": {"nodeLabel": "x"}}]},
            "one of podAnnotation and podResource is required",
        ),
        (
            CountedResources,
            {"resources": [resource({"nodeLabel": "x"})] * 2},
            "resources[1].name: slots is counted already",
        ),
        (
            CountedResources,
            {"resources": [resource({"object": {**TOLD, "amount": "status..free"}})]},
            "capacity.object.amount: must be names with dots between them",
        ),
        (CountedPools, {"pools": [resource({"configMap": MAP})]}, "configMap.key: is required"),
        (CountedPools, {"pools": [resource({"nodeLabel": "x"})]}, "not by nodes"),
    ],
)
def test_what_a_configuration_gets_wrong(plugin: Any, args: dict[str, Any], problem: str) -> None:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": plugin.name, "args": args}]}],
    }
    with pytest.raises(ConfigError) as caught:
        load_mapping(raw, known=known_plugins(REGISTRY))

    assert problem in str(caught.value)


def test_profiles_agree_on_how_a_resource_is_counted() -> None:
    def profile(name: str, label: str) -> dict[str, Any]:
        args = {"resources": [resource({"nodeLabel": label})]}
        return {
            "schedulerName": name,
            "plugins": {"multiPoint": {"enabled": [{"name": "CountedResources"}]}},
            "pluginConfig": [{"name": "CountedResources", "args": args}],
        }

    with pytest.raises(ConfigError, match="slots is counted otherwise by another profile"):
        make_engine(profiles=[profile("one", "x"), profile("two", "y")])
