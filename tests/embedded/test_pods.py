"""What is special about pods: binding, eviction, grace, priority, the coexist policy."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.server import ServerSettings
from tests.embedded.serving import NODES, PODS, Client, Json, binding, node, pod, served

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.mark.parametrize(
    ("sent", "code", "told"),
    [
        (binding("other", "n"), 400, "name in URL does not match name in Binding object"),
        (binding("a", ""), 422, "target.name: Required value"),
        ({**binding("a", "n"), "target": {"kind": "Pod", "name": "n"}}, 422, "target.kind"),
        (binding("a", "n", uid="no"), 409, "UID in precondition: no"),
        (binding("a", "n", resourceVersion="1"), 409, "ResourceVersion in precondition: 1"),
        ({"metadata": {"name": "a"}, "target": 3}, 400, "cannot be handled"),
    ],
)
async def test_bindings_that_are_refused(client: Client, sent: Any, code: int, told: str) -> None:
    await client.create(PODS, pod("a"))

    status = await client.refused(code, "POST", f"{PODS}/a/binding", sent)

    assert told in status["message"]
    assert "nodeName" not in (await client.get(f"{PODS}/a"))["spec"]


async def test_only_a_pod_that_waits_for_a_node_can_be_bound(client: Client) -> None:
    await client.create(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    leaving = pod("leaving")
    leaving["metadata"]["finalizers"] = ["example.com/hold"]
    await client.create(PODS, leaving)
    await client.delete(f"{PODS}/leaving")

    for name, told in (
        ("gated", "pod gated has non-empty .spec.schedulingGates"),
        ("leaving", "pod leaving is being deleted, cannot be assigned to a host"),
    ):
        sent = binding(name, "n")
        status = await client.refused(409, "POST", f"{PODS}/{name}/binding", sent)
        assert status["message"].endswith(told)
    await client.refused(404, "POST", f"{PODS}/nobody/binding", binding("nobody", "n"))


async def test_binding_ends_a_nomination_and_takes_the_uid_of_the_pod(client: Client) -> None:
    made = await client.create(PODS, pod("a"))
    await client.patch(f"{PODS}/a/status", {"status": {"nominatedNodeName": "n"}})

    sent = binding("a", "n", uid=made["metadata"]["uid"])
    await client.create("/api/v1/namespaces/default/bindings", sent)

    bound = await client.get(f"{PODS}/a")
    assert bound["spec"]["nodeName"] == "n"
    assert "nominatedNodeName" not in bound["status"]


async def test_status_and_spec_are_written_apart(client: Client) -> None:
    made = await client.create(PODS, pod("a"))
    made["spec"]["containers"][0]["image"] = "registry.example/app:2"
    made["status"]["phase"] = "Running"

    by_status = await client.put(f"{PODS}/a/status", made)
    assert by_status["status"]["phase"] == "Running"
    assert by_status["spec"]["containers"][0]["image"] == "registry.example/app:1"
    made["metadata"]["resourceVersion"] = by_status["metadata"]["resourceVersion"]
    made["status"]["phase"] = "Failed"
    by_spec = await client.put(f"{PODS}/a", made)
    assert by_spec["status"]["phase"] == "Running"
    assert by_spec["spec"]["containers"][0]["image"] == "registry.example/app:2"
    assert by_spec["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nodeName": "n"}, "pod updates may not change fields"),
        ({"containers": []}, "spec.containers: Required value"),
        ({"nodeSelector": {"a": "b"}}, "pod updates may not change fields"),
        ({"priority": 7}, "pod updates may not change fields"),
        ({"schedulingGates": [{"name": "new"}]}, "only deletion is allowed"),
    ],
)
async def test_little_of_a_pod_may_change(client: Client, change: Any, told: str) -> None:
    await client.create(PODS, pod("a"))

    media = "application/merge-patch+json"
    status = await client.refused(422, "PATCH", f"{PODS}/a", {"spec": change}, kind=media)

    assert told in status["message"]


MIRROR = "kubernetes.io/config.mirror"


async def test_a_mirror_pod_has_a_node_and_stays_one(client: Client) -> None:
    mirror = pod("a")
    mirror["metadata"]["annotations"] = {MIRROR: "x"}
    status = await client.refused(422, "POST", PODS, mirror)
    assert "must set spec.nodeName if mirror pod annotation is set" in status["message"]

    mirror["spec"]["nodeName"] = "n"
    await client.create(PODS, mirror)
    await client.create(PODS, pod("b"))

    media = "application/merge-patch+json"
    for name, annotation, told in (("a", None, "remove or update"), ("b", "x", "add")):
        change = {"metadata": {"annotations": {MIRROR: annotation}}}
        status = await client.refused(422, "PATCH", f"{PODS}/{name}", change, kind=media)
        assert f"may not {told} mirror pod annotation" in status["message"]


async def test_gates_can_be_taken_off_and_a_waiting_pod_narrowed(client: Client) -> None:
    made = await client.create(PODS, pod("a", schedulingGates=[{"name": "g"}]))
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"

    await client.patch(f"{PODS}/a", {"spec": {"nodeSelector": {"disk": "fast"}}})
    freed = await client.patch(f"{PODS}/a", {"spec": {"schedulingGates": None}})

    assert freed["spec"]["nodeSelector"] == {"disk": "fast"}
    assert "schedulingGates" not in freed["spec"]


async def test_resizing_changes_resources_only(client: Client) -> None:
    await client.create(PODS, pod("a"))
    container = {
        "name": "main",
        "image": "registry.example/other:9",
        "resources": {"requests": {"cpu": "2"}},
    }

    resized = await client.patch(
        f"{PODS}/a/resize", {"spec": {"containers": [container]}}, "strategic-merge"
    )

    assert resized["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert resized["spec"]["containers"][0]["image"] == "registry.example/app:1"


async def test_grace_can_only_be_shortened(client: Client) -> None:
    await client.create(PODS, pod("a", nodeName="n", terminationGracePeriodSeconds=50))
    marked = await client.delete(f"{PODS}/a")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 50
    assert await client.delete(f"{PODS}/a", {"gracePeriodSeconds": 60}) == marked

    shorter = await client.delete(f"{PODS}/a", {"gracePeriodSeconds": 5})

    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    assert shorter["metadata"]["deletionTimestamp"] < marked["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize(
    ("spec", "phase"),
    [({}, "Pending"), ({"nodeName": "n"}, "Succeeded"), ({"nodeName": "n"}, "Failed")],
)
async def test_a_pod_that_nobody_runs_goes_at_once(client: Client, spec: Any, phase: str) -> None:
    await client.create(PODS, pod("a", **spec))
    await client.patch(f"{PODS}/a/status", {"status": {"phase": phase}})

    await client.delete(f"{PODS}/a")

    await client.refused(404, "GET", f"{PODS}/a")


async def test_finalizers_hold_an_object(client: Client) -> None:
    held = pod("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await client.create(PODS, held)
    marked = await client.delete(f"{PODS}/a")
    assert marked["metadata"]["deletionTimestamp"]
    media = "application/merge-patch+json"
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    status = await client.refused(422, "PATCH", f"{PODS}/a", more, kind=media)
    assert "no new finalizers can be added" in status["message"]

    await client.patch(f"{PODS}/a", {"metadata": {"finalizers": None}})

    await client.refused(404, "GET", f"{PODS}/a")


async def test_preconditions_of_a_deletion(client: Client) -> None:
    await client.create(PODS, pod("a"))
    for condition in ({"uid": "no"}, {"resourceVersion": "1"}):
        status = await client.refused(409, "DELETE", f"{PODS}/a", {"preconditions": condition})
        assert "in the precondition" in status["message"]

    await client.delete(f"{PODS}?labelSelector=none")
    assert (await client.get(PODS))["items"]
    await client.delete(PODS)
    assert (await client.get(PODS))["items"] == []


async def budget(client: Client, **status: int) -> None:
    body = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    made = await client.create(BUDGETS, body)
    seen = {"observedGeneration": made["metadata"]["generation"], **status}
    await client.patch(f"{BUDGETS}/b/status", {"status": seen})


async def running(client: Client, name: str, *, ready: bool = True) -> None:
    made = pod(name, nodeName="n")
    made["metadata"]["labels"] = {"app": "x"}
    await client.create(PODS, made)
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": "Running", "conditions": conditions}
    await client.patch(f"{PODS}/{name}/status", {"status": status})


async def test_a_budget_allows_so_many_evictions(client: Client) -> None:
    await budget(client, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    await running(client, "a")
    await running(client, "c")

    await client.create(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
    status = await client.refused(429, "POST", f"{PODS}/c/eviction", {"metadata": {"name": "c"}})

    evicted = await client.get(f"{PODS}/a")
    assert evicted["metadata"]["deletionTimestamp"]
    reasons = [each.get("reason") for each in evicted["status"]["conditions"]]
    assert "EvictionByEvictionAPI" in reasons
    spent = (await client.get(f"{BUDGETS}/b"))["status"]
    assert spent["disruptionsAllowed"] == 0
    assert list(spent["disruptedPods"]) == ["a"]
    assert status["reason"] == "TooManyRequests"
    assert status["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert "deletionTimestamp" not in (await client.get(f"{PODS}/c"))["metadata"]


async def test_a_budget_that_nobody_has_looked_at_allows_nothing(client: Client) -> None:
    body = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    await client.create(BUDGETS, body)
    await running(client, "a")

    status = await client.refused(429, "POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})

    assert "still being processed" in status["details"]["causes"][0]["message"]
    assert status["details"]["retryAfterSeconds"] == 10


async def test_pods_that_do_not_count_are_evicted_freely(client: Client) -> None:
    await budget(client, disruptionsAllowed=0, currentHealthy=2, desiredHealthy=2)
    await running(client, "unready", ready=False)
    await client.create(PODS, pod("waiting"))

    for name in ("unready", "waiting"):
        await client.create(f"{PODS}/{name}/eviction", {"metadata": {"name": name}})

    assert (await client.get(f"{PODS}/unready"))["metadata"]["deletionTimestamp"]
    await client.refused(404, "GET", f"{PODS}/waiting")


async def test_priority_comes_from_its_class(client: Client) -> None:
    await client.create(CLASSES, {"metadata": {"name": "high"}, "value": 100})
    usual = {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
    await client.create(CLASSES, {**usual, "preemptionPolicy": "Never"})

    high = (await client.create(PODS, pod("a", priorityClassName="high")))["spec"]
    plain = (await client.create(PODS, pod("b")))["spec"]

    assert (high["priority"], high["preemptionPolicy"]) == (100, "PreemptLowerPriority")
    assert (plain["priority"], plain["preemptionPolicy"]) == (5, "Never")
    assert plain["priorityClassName"] == "usual"
    status = await client.refused(403, "POST", PODS, pod("c", priorityClassName="nobody"))
    assert "no PriorityClass with name nobody was found" in status["message"]
    status = await client.refused(403, "POST", PODS, pod("c", priority=7))
    assert "must not be provided in pod spec" in status["message"]


async def test_a_namespace_must_exist_and_stay(client: Client) -> None:
    team = "/api/v1/namespaces/team"
    await client.refused(404, "POST", f"{team}/pods", pod("a"))
    await client.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    await client.create(f"{team}/pods", pod("a"))
    leaving = await client.delete(team)
    assert leaving["status"]["phase"] == "Terminating"

    status = await client.refused(403, "POST", f"{team}/pods", pod("b"))
    assert status["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await client.put(f"{team}/finalize", {**leaving, "spec": {"finalizers": []}})
    await client.refused(404, "GET", team)
    await client.refused(403, "DELETE", "/api/v1/namespaces/default")


async def test_the_coexist_policy_is_a_field_with_two_values(client: Client) -> None:
    made = await client.create(PODS, pod("a", coexistPolicy="DaemonsetAndStaticPods"))
    assert made["spec"]["coexistPolicy"] == "DaemonsetAndStaticPods"

    status = await client.refused(422, "POST", PODS, pod("b", coexistPolicy="Sometimes"))

    assert status["details"]["causes"][0] == {
        "reason": "FieldValueNotSupported",
        "message": 'Unsupported value: "Sometimes": supported values: "Any", '
        '"DaemonsetAndStaticPods"',
        "field": "spec.coexistPolicy",
    }


async def test_without_its_gate_the_coexist_policy_is_dropped_unless_in_use(tmp_path: Any) -> None:
    def deployment(**spec: Any) -> dict[str, Any]:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x", **spec)["spec"]}
        selector = {"matchLabels": {"a": "b"}}
        return {"metadata": {"name": "d"}, "spec": {"selector": selector, "template": template}}

    alone = {"coexistPolicy": "DaemonsetAndStaticPods"}
    async with served(ServerSettings(tls=False, data_dir=tmp_path)) as client:
        await client.create(PODS, pod("old", **alone))
        await client.create(DEPLOYMENTS, deployment(**alone))

    async with served(ServerSettings(tls=False, data_dir=tmp_path, coexist=False)) as client:
        new = await client.create(PODS, pod("new", coexistPolicy="nonsense too"))
        assert "coexistPolicy" not in new["spec"]
        old = await client.patch(f"{PODS}/old", {"metadata": {"labels": {"x": "y"}}})
        assert old["spec"]["coexistPolicy"] == "DaemonsetAndStaticPods"
        kept = await client.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 2}})
        assert kept["spec"]["template"]["spec"]["coexistPolicy"] == "DaemonsetAndStaticPods"
        dropped = deployment(**alone)
        dropped["metadata"]["name"] = "e"
        fresh = await client.create(DEPLOYMENTS, dropped)
        assert "coexistPolicy" not in fresh["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("path", "way"),
    [
        ("/api/v1/namespaces/default/podtemplates", "template.spec"),
    ],
)
@pytest.mark.parametrize("enabled", [True, False])
async def test_the_gate_of_the_field_in_templates(path: str, way: str, enabled: bool) -> None:
    below: Json = {**pod("")["spec"], "restartPolicy": "Never", "coexistPolicy": "Any"}
    for step in reversed(way.split(".")):
        below = {step: below}
    if "spec" in below:
        below["spec"]["schedule"] = "@daily"
    async with served(ServerSettings(tls=False, coexist=enabled)) as client:
        found = await client.create(path, {"metadata": {"name": "x"}, **below})

    for step in way.split("."):
        found = found[step]
    assert ("coexistPolicy" in found) is enabled


async def test_what_the_server_fills_in(client: Client) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    selector = {"matchLabels": {"app": "x"}}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["version"]}
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        "matchLabelKeys": ["version"],
    }
    container = {
        "name": "main",
        "image": "registry.example/app",
        "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
    }
    sent = pod(
        "a",
        hostNetwork=True,
        containers=[container],
        volumes=[{"name": "scratch"}],
        affinity={"podAffinity": {required: [term]}},
        topologySpreadConstraints=[spread],
    )
    sent["metadata"]["labels"] = {"version": "1"}

    made = await client.create(PODS, sent)

    filled = made["spec"]["containers"][0]
    assert filled["imagePullPolicy"] == "Always"
    assert filled["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert filled["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert made["status"]["qosClass"] == "Guaranteed"
    assert made["spec"]["volumes"] == [{"name": "scratch", "emptyDir": {}}]
    own = [{"key": "version", "operator": "In", "values": ["1"]}]
    affinity = made["spec"]["affinity"]["podAffinity"][required][0]
    assert affinity["labelSelector"]["matchExpressions"] == own
    constraint = made["spec"]["topologySpreadConstraints"][0]
    assert constraint["labelSelector"]["matchExpressions"] == own
    assert [each["effect"] for each in made["spec"]["tolerations"]] == ["NoExecute", "NoExecute"]
    # Reading and writing back must not add anything a second time.
    assert await client.put(f"{PODS}/a", made) == made


async def test_nodes_are_what_they_say(client: Client) -> None:
    made = await client.create(NODES, node("n"))

    assert made["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
    kept = await client.patch(f"{NODES}/n", {"spec": {"unschedulable": True}, "status": None})
    assert kept["status"] == made["status"]
    unschedulable = await client.get(f"{NODES}?fieldSelector=spec.unschedulable=true")
    assert len(unschedulable["items"]) == 1
