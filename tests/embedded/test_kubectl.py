"""Real kubectl works against the server, as far as people use it."""

from __future__ import annotations

import json

from tests.embedded.kubectl import DEFINITION, DEPLOYMENT, POD, WIDGET, Kubectl, needs_kubectl
from tests.embedded.serving import NODES, PODS, Client, binding, node, pod
from tests.patience import until

pytestmark = needs_kubectl


async def test_apply_and_get(kubectl: Kubectl) -> None:
    assert "pod/web created" in await kubectl.run("apply -f -", POD)
    assert "pod/web unchanged" in await kubectl.run("apply -f -", POD)
    changed = POD.replace("app: web", "app: other")
    assert "pod/web configured" in await kubectl.run("apply -f -", changed)

    assert "web    0/1     Pending   0" in await kubectl.run("get pods")
    wide = await kubectl.run("get pods -o wide")
    assert "NOMINATED NODE" in wide.splitlines()[0]
    assert "qosClass: Burstable" in await kubectl.run("get pod web -o yaml")
    assert await kubectl.run("get pods -l app=other -o name") == "pod/web\n"
    assert "No resources found" in await kubectl.run("get pods -l app=web")
    assert await kubectl.run("get pods --field-selector spec.nodeName= -o name") == "pod/web\n"
    columns = await kubectl.run("get pods -o custom-columns=N:.metadata.name,P:.status.phase")
    assert columns.splitlines()[1].split() == ["web", "Pending"]
    assert "web" in await kubectl.run("get all -A")


async def test_create(kubectl: Kubectl, secure: Client) -> None:
    """These commands send protobuf, whatever the server says about itself."""
    await kubectl.run("create namespace team")
    await kubectl.run("create deployment web --image=registry.example/web:1 --replicas=2")
    await kubectl.run("create secret generic safe --from-literal=a=b")
    await kubectl.run("create job once --image=registry.example/job:1")
    await kubectl.run("create pdb few --selector=app=web --min-available=50%")
    await kubectl.run("create priorityclass high --value=100")
    await kubectl.run("run single --image=registry.example/web:1")
    await kubectl.run("expose deployment web --port=80")

    deployment = await secure.get("/apis/apps/v1/namespaces/default/deployments/web")
    assert deployment["spec"]["replicas"] == 2
    assert "50%" in await kubectl.run("get pdb few")
    assert "single" in await kubectl.run("get pods")
    assert await kubectl.run("get secret safe -o jsonpath={.data.a}") == "Yg=="


async def test_describe_shows_events(kubectl: Kubectl, secure: Client) -> None:
    await kubectl.run("apply -f -", POD)
    await secure.create(NODES, node("n"))
    for kind, name in (("Pod", "web"), ("Node", "n")):
        made = await secure.get(f"{PODS}/web" if kind == "Pod" else f"{NODES}/n")
        uid = made["metadata"]["uid"] if kind == "Pod" else "n"
        about = {"kind": kind, "name": name, "uid": uid}
        if kind == "Pod":
            about["namespace"] = "default"
        event = {
            "metadata": {"generateName": f"{name}."},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "tests",
            "reportingInstance": "tests-1",
            "action": "Looking",
            "reason": "Looked",
            "regarding": about,
            "note": f"looked at {name}",
            "type": "Normal",
        }
        await secure.create("/apis/events.k8s.io/v1/namespaces/default/events", event)

    assert "looked at web" in await kubectl.run("describe pod web")
    described = await kubectl.run("describe node n")
    assert "Allocated resources" in described
    assert "looked at n" in described
    assert "Looked" in await kubectl.run("get events")


async def test_changing_objects(kubectl: Kubectl, secure: Client) -> None:
    await kubectl.run("apply -f -", POD)
    await kubectl.run("apply -f -", DEPLOYMENT)

    await kubectl.run("label pod web tier=front")
    await kubectl.run("annotate pod web who=me")
    await kubectl.run("edit pod web")
    await kubectl.run('patch deployment web -p {"spec":{"paused":true}}')
    await kubectl.run("scale deployment web --replicas=5")
    await kubectl.run("set image deployment/web main=registry.example/web:2")

    changed = await secure.get(f"{PODS}/web")
    assert changed["metadata"]["labels"]["tier"] == "front"
    assert changed["metadata"]["annotations"]["who"] == "me"
    assert changed["metadata"]["annotations"]["note"] == "after"
    deployment = await secure.get("/apis/apps/v1/namespaces/default/deployments/web")
    assert deployment["spec"]["paused"] is True
    assert deployment["spec"]["replicas"] == 5
    assert deployment["metadata"]["generation"] == 4


async def test_nodes_are_tainted_cordoned_and_drained(kubectl: Kubectl, secure: Client) -> None:
    await secure.create(NODES, node("n"))
    await kubectl.run("apply -f -", POD)
    await secure.create(f"{PODS}/web/binding", binding("web", "n"))
    await kubectl.run("taint node n dedicated=tests:NoSchedule")
    await kubectl.run("cordon n")
    assert "SchedulingDisabled" in await kubectl.run("get nodes")

    refused = await kubectl.fails("drain n")
    assert "declare no controller" in refused
    draining = await kubectl.start("drain n --force")

    async def is_marked() -> bool:
        return "deletionTimestamp" in (await secure.get(f"{PODS}/web"))["metadata"]

    await until(is_marked)
    await secure.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})
    drained = (await draining.communicate())[0].decode()
    assert "evicting pod default/web" in drained
    assert "node/n drained" in drained
    await kubectl.run("uncordon n")
    await kubectl.run("taint node n dedicated-")
    assert (await secure.get(f"{NODES}/n"))["spec"].get("taints") in (None, [])


async def test_deleting_and_waiting(kubectl: Kubectl, secure: Client) -> None:
    await kubectl.run("apply -f -", POD)
    await kubectl.run("apply -f -", DEPLOYMENT)
    assert "deleted" in await kubectl.run("delete pod web")
    assert "NotFound" in await kubectl.fails("get pod web")
    status = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
    await secure.patch("/apis/apps/v1/namespaces/default/deployments/web/status", status)
    await kubectl.run("wait deployment/web --for=condition=Available")
    counts = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
    path = "/apis/apps/v1/namespaces/default/deployments/web/status"
    await secure.patch(path, {"status": counts})
    rolled = await kubectl.run("rollout status deployment/web")
    assert "successfully rolled out" in rolled
    assert "deleted" in await kubectl.run("delete deployments --all")


async def test_what_is_not_here_is_refused_politely(kubectl: Kubectl) -> None:
    await kubectl.run("apply -f -", POD)

    assert "runs no containers" in await kubectl.fails("logs web")
    assert "runs no containers" in await kubectl.fails("exec web -- ls")


async def test_top(kubectl: Kubectl, secure: Client) -> None:
    await secure.create(NODES, node("n"))
    await kubectl.run("apply -f -", POD)
    await secure.create(f"{PODS}/web/binding", binding("web", "n"))
    await secure.patch(f"{PODS}/web/status", {"status": {"phase": "Running"}})

    assert (await kubectl.run("top pods --no-headers")).split() == ["web", "1000m", "0Mi"]
    assert (await kubectl.run("top nodes --no-headers")).split()[:3] == ["n", "1000m", "25%"]


async def test_discovery(kubectl: Kubectl) -> None:
    resources = await kubectl.run("api-resources")
    assert "persistentvolumeclaims" in resources
    assert "coexistPolicy" in await kubectl.run("explain pod.spec --recursive")
    assert "gate CoexistPolicy" in await kubectl.run("explain pod.spec.coexistPolicy")
    assert await kubectl.run("auth can-i create pods") == "yes\n"
    assert "Username" in await kubectl.run("auth whoami")
    assert "apps/v1" in await kubectl.run("api-versions")


async def test_a_watch_shows_changes_as_rows(kubectl: Kubectl, secure: Client) -> None:
    await secure.create(PODS, pod("a"))
    process = await kubectl.start("get pods -w --output-watch-events")
    assert process.stdout is not None
    assert b"EVENT" in await process.stdout.readline()
    assert b"ADDED" in await process.stdout.readline()
    await secure.create(f"{PODS}/a/binding", binding("a", "n"))
    assert b"MODIFIED" in await process.stdout.readline()
    process.terminate()
    await process.communicate()


async def test_unknown_fields_are_refused(kubectl: Kubectl) -> None:
    told = await kubectl.fails("apply -f -", POD.replace("spec:", "spec:\n  nodName: a"))

    assert 'unknown field "spec.nodName"' in told


async def test_server_side_apply(kubectl: Kubectl, secure: Client) -> None:
    await kubectl.run("apply --server-side -f -", DEPLOYMENT)
    await kubectl.run("scale deployment web --replicas=5")

    told = await kubectl.fails("apply --server-side -f -", DEPLOYMENT)
    assert ".spec.replicas" in told
    await kubectl.run("apply --server-side --force-conflicts -f -", DEPLOYMENT)
    await kubectl.run("apply --server-side -f -", DEPLOYMENT.replace("  replicas: 2\n", ""))

    deployment = json.loads(await kubectl.run("get deployment web -o json"))
    assert deployment["spec"]["replicas"] == 1


async def test_custom_resources(kubectl: Kubectl) -> None:
    await kubectl.run("apply -f -", DEFINITION)
    await kubectl.run("wait crd/widgets.example.com --for=condition=Established")
    await kubectl.run("apply -f -", WIDGET)

    assert (await kubectl.run("get wg")).split() == ["NAME", "SIZE", "w", "3"]
    assert "size" in await kubectl.run("explain widget.spec")
    assert "spec.size" in await kubectl.fails("apply -f -", WIDGET.replace("3", "0"))
    await kubectl.run("delete crd widgets.example.com")
    assert "widgets" not in await kubectl.run("api-resources --cached=false")
