"""What pods and nodes use, for `kubectl top`: as annotations of pods say, or as they request.

Nothing of this is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.embedded.api.decoding import amount_text, canonical, now_text, part
from moorage.embedded.api.kind import KindRules, ServedKind
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.store.object_store import Json, StoredObject

from .pod_spec_rules import Nanos, add_amounts, read_amounts

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
#: On a pod: what it uses, such as cpu=100m,memory=64Mi.
USAGE = "hollow.moorage.dev/usage"

_RESOURCES = ("cpu", "memory")
_NOTHING = {"cpu": "0", "memory": "0"}
_WINDOW = "10s"


class UsageRules(KindRules):
    """The rules of kinds that are made up when they are asked for."""

    def describe(self) -> Json:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def usage_kinds() -> Iterator[ServedKind]:
    """Yields the usage of nodes and of pods."""
    for kind, plural in (("NodeMetrics", "nodes"), ("PodMetrics", "pods")):
        yield ServedKind(
            group=GROUP,
            version=VERSION,
            kind=kind,
            plural=plural,
            namespaced=plural == "pods",
            verbs=("get", "list"),
            rules=UsageRules(),
        )


def pod_usage(api: ObjectApi, entry: StoredObject) -> Json | None:
    """Returns what a pod uses; None if it does not run."""
    pod = entry.object
    if part(pod, "status").get("phase") != "Running":
        return None
    used = _containers(pod)
    return {**_head(api, "PodMetrics", pod), "containers": used}


def node_usage(api: ObjectApi, entry: StoredObject, pods: Iterable[StoredObject]) -> Json:
    """Returns what the pods of a node use."""
    used = [pod_usage(api, each) for each in pods]
    total = add_amounts(
        read_amounts(container["usage"])
        for each in used
        if each is not None
        for container in each["containers"]
    )
    return {**_head(api, "NodeMetrics", entry.object), "usage": _texts(total)}


def _head(api: ObjectApi, kind: str, item: Json) -> Json:
    metadata, now = item["metadata"], now_text(api.clock())
    kept = {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata}
    return {
        "kind": kind,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {**kept, "creationTimestamp": now},
        "timestamp": now,
        "window": _WINDOW,
    }


def _containers(pod: Json) -> list[Json]:
    """Returns the usage of each container; what an annotation says is the first one's."""
    said = _read_usage(part(pod["metadata"], "annotations").get(USAGE, ""))
    containers = pod["spec"]["containers"]
    if said:
        used = [{**_NOTHING, **said}, *([_NOTHING] * (len(containers) - 1))]
    else:
        used = [{**_NOTHING, **_texts(_requests(each))} for each in containers]
    return [
        {"name": each["name"], "usage": usage} for each, usage in zip(containers, used, strict=True)
    ]


def _requests(container: Json) -> Nanos:
    return read_amounts(part(part(container, "resources"), "requests"))


def _texts(amounts: Nanos) -> dict[str, str]:
    return {name: amount_text(name, amounts.get(name, 0)) for name in _RESOURCES}


def _read_usage(text: str) -> dict[str, str]:
    """Reads an annotation; what cannot be read says nothing."""
    pairs = (each.strip().partition("=") for each in text.split(","))
    try:
        return {name: canonical(amount) for name, _, amount in pairs if name in _RESOURCES}
    except ValueError:
        return {}
