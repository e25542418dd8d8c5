"""Whatever is sent, the answer is a Status, never an accident, and no watch is left behind."""

from __future__ import annotations

import asyncio
import http.client
import socket
from typing import Any

import msgspec
from hypothesis import given, settings, strategies as st

from moorage.embedded.server import Server
from tests.embedded.serving import TOKEN, node, pod, service
from tests.patience import PATIENCE_SECONDS, until_true
from tests.strategies import FIXTURES_MAY_BE_SHARED

# One server for all examples: what they leave behind is part of what the next ones meet.
LENIENT = settings(suppress_health_check=FIXTURES_MAY_BE_SHARED)

SEGMENTS = st.sampled_from(
    [
        "api",
        "apis",
        "v1",
        "namespaces",
        "default",
        "pods",
        "nodes",
        "p",
        "n",
        "status",
        "binding",
        "eviction",
        "scale",
        "log",
        "finalize",
        "events",
        "apps",
        "deployments",
        "d",
        "batch",
        "jobs",
        "policy",
        "poddisruptionbudgets",
        "storage.k8s.io",
        "bindings",
        "persistentvolumeclaims",
        "scheduling.k8s.io",
        "priorityclasses",
        "events.k8s.io",
        "openapi",
        "v3",
        "version",
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "customresourcedefinitions",
        "widgets",
        "apiextensions.k8s.io",
        "example.com",
        "coordination.k8s.io",
        "leases",
        "%2e%2e",
        "%00",
        "x.",
        "ä",
    ]
)
KNOWN_PATHS = st.sampled_from(
    (
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/pods/p",
        "/api/v1/namespaces/default/pods/p/status",
        "/api/v1/namespaces/default/pods/p/binding",
        "/api/v1/namespaces/default/pods/p/eviction",
        "/api/v1/namespaces/default/pods/p/resize",
        "/api/v1/namespaces/default/events",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        "/api/v1/nodes",
        "/api/v1/nodes/n",
        "/api/v1/namespaces",
        "/api/v1/namespaces/other/finalize",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apps/v1/namespaces/default/deployments/d",
        "/apis/apps/v1/namespaces/default/deployments/d/scale",
        "/apis/batch/v1/namespaces/default/jobs",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "/apis/storage.k8s.io/v1/storageclasses",
        "/api/v1/persistentvolumes",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/example.com/v1/namespaces/default/widgets",
        "/apis/example.com/v1/namespaces/default/widgets/w",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces/default/services/s",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/secrets",
        "/apis/batch/v1/namespaces/default/cronjobs",
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        "/openapi/v2",
    )
)
PATHS = KNOWN_PATHS | st.lists(SEGMENTS, max_size=7).map(lambda steps: "/" + "/".join(steps))
TEXTS = st.sampled_from(
    [
        "",
        "0",
        "1",
        "-1",
        "true",
        "x",
        "a=b",
        "a in (b",
        "metadata.name=p",
        "All",
        "99999999",
        "Exact",
    ]
) | st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="&#"), max_size=9)
QUERIES = st.dictionaries(
    st.sampled_from(
        [
            "watch",
            "labelSelector",
            "fieldSelector",
            "limit",
            "continue",
            "resourceVersion",
            "dryRun",
            "force",
            "resourceVersionMatch",
            "sendInitialEvents",
            "allowWatchBookmarks",
            "fieldManager",
            "fieldValidation",
            "gracePeriodSeconds",
            "propagationPolicy",
            "includeObject",
            "timeoutSeconds",
            "pretty",
            "orphanDependents",
        ]
    ),
    TEXTS,
    max_size=4,
)
MEDIA = st.sampled_from(
    (
        "application/json",
        "application/json",
        "application/yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "nonsense",
        "",
    )
)
ACCEPTS = st.sampled_from(
    (
        "application/json",
        "*/*",
        "text/html",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        ";;=,;",
    )
)
AGENTS = st.sampled_from(("", "kubectl/v1", "a" * 500, "\xff", "/", "x/\x01"))
FIELDS = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "uid",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "resourceVersion",
        "generateName",
        "managedFields",
        "deletionTimestamp",
        "spec",
        "status",
        "containers",
        "image",
        "resources",
        "requests",
        "limits",
        "cpu",
        "memory",
        "template",
        "selector",
        "matchLabels",
        "replicas",
        "tolerations",
        "affinity",
        "nodeAffinity",
        "podAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
        "matchExpressions",
        "key",
        "operator",
        "values",
        "topologyKey",
        "labelSelector",
        "target",
        "nodeName",
        "topologySpreadConstraints",
        "schedulingGates",
        "volumes",
        "ports",
        "containerPort",
        "conditions",
        "type",
        "phase",
        "taints",
        "effect",
        "capacity",
        "allocatable",
        "value",
        "op",
        "path",
        "from",
        "$patch",
        "$retainKeys",
        "minAvailable",
        "data",
        "group",
        "names",
        "versions",
        "scope",
        "schema",
        "openAPIV3Schema",
        "coexistPolicy",
        "propagationPolicy",
        "preconditions",
        "gracePeriodSeconds",
        "parameters",
        "overhead",
        "priorityClassName",
        "clusterIP",
        "nodePort",
        "volumeMounts",
        "jobTemplate",
        "immutable",
        "stringData",
        "strategy",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["p", "a", "v1", "Pod", "1", "500m", "-1", "NoSchedule", "In", "add", "/spec"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)
VALID: tuple[Any, ...] = (
    pod("p"),
    node("n"),
    {"metadata": {"name": "d"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}},
    {"spec": {"size": 1}, "metadata": {"name": "w"}},
    service("s", type="NodePort", clusterIP="10.96.0.9", selector={"a": "b"}),
    {"metadata": {"name": "m", "labels": {"a": "b"}}, "data": {"a": "YQ=="}, "immutable": True},
    {"apiVersion": "v1", "kind": "Pod", **pod("p", volumes=[{"name": "v", "emptyDir": {}}])},
    [{"op": "replace", "path": "/spec/replicas", "value": 1}],
)


@st.composite
def bent(draw: st.DrawFn) -> Any:
    """Something valid with one place changed."""
    item = msgspec.json.decode(msgspec.json.encode(draw(st.sampled_from(VALID))))
    place = item
    while isinstance(place, dict | list) and place:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = draw(st.sampled_from(list(keys)))
        if not isinstance(place[key], dict | list) or draw(st.booleans()):
            place[key] = draw(VALUES)
            return item
        place = place[key]
    return item


BODIES = (
    (VALUES | bent()).map(msgspec.json.encode)
    | st.binary(max_size=30)
    | st.binary(max_size=30).map(lambda noise: b"k8s\x00" + noise)
    | st.just(b"[" * 5000)
    | st.just(b'{"a":' * 2000)
    | st.just(b'{"spec":' * 400 + b"1" + b"}" * 400)
    | st.just(b'{"metadata":{"name":"\xff\xfe"}}')
    | st.just(b'{"metadata":{"name":"a","labels":{"a":"\\ud800"}}}')
    | st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass"))
)


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "ODD"]),
    path=PATHS,
    query=QUERIES,
    media=MEDIA,
    accept=ACCEPTS,
    agent=AGENTS,
    body=BODIES,
)
@LENIENT
def test_every_answer_is_meant(
    running: Server,
    method: str,
    path: str,
    query: dict[str, str],
    media: str,
    accept: str,
    agent: str,
    body: bytes,
) -> None:
    text = "&".join(f"{key}={value}" for key, value in {"timeoutSeconds": "1", **query}.items())
    address = f"{path}?{text}".encode("ascii", "ignore").decode().replace(" ", "+")
    connection = http.client.HTTPConnection(
        running.settings.host, running.port, timeout=PATIENCE_SECONDS
    )
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": media, "Accept": accept}
    headers["User-Agent"] = agent
    connection.request(method, address, body, headers)
    response = connection.getresponse()
    # A watch is left in the middle: that must not keep it alive.
    text_back = b"" if response.getheader("Cache-Control") else response.read()
    connection.close()

    assert response.status != 500, text_back
    if response.status >= 400 and method != "HEAD":
        status = msgspec.json.decode(text_back)
        assert (status["kind"], status["code"]) == ("Status", response.status)


@given(st.binary(min_size=1, max_size=60) | st.sampled_from([b"GET / HTTP/9\r\n\r\n", b"\x16\x03"]))
@LENIENT
def test_what_is_not_http_is_told_so(running: Server, noise: bytes) -> None:
    with socket.create_connection(
        (running.settings.host, running.port), timeout=PATIENCE_SECONDS
    ) as wire:
        wire.sendall(noise + b"\r\n\r\n")
        wire.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := wire.recv(65536):
            answer += chunk

    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b" 40" in head.split(b"\r\n")[0]
        assert msgspec.json.decode(body.split(b"\r\n")[0].strip() or b"{}").get("kind") == "Status"


def test_no_watch_outlives_its_client(running: Server) -> None:
    """Runs after the others: what they left behind must be gone."""

    async def settle() -> None:
        tables = [running.api.store.table(kind.table) for kind in running.api.kinds]
        await until_true(lambda: not any(table.waiting for table in tables))

    asyncio.run(settle())
