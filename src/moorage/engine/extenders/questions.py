"""The JSON that extenders get: kube-scheduler's, with the names of Go's fields.

Pods and nodes are included as the JSON that the API wrote. Absent parts are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from moorage.engine.actions import AskExtender, BindPod
from moorage.engine.extender_answers import NodeVictims

FILTER, PRIORITIZE, PREEMPT, BIND = "filter", "prioritize", "preempt", "bind"

_encode = msgspec.json.Encoder().encode


class Manifests(Protocol):
    """The JSON of pods and nodes. It raises KeyError for objects that are gone."""

    def pod(self, uid: str) -> bytes: ...

    def node(self, name: str) -> bytes: ...


def encode_question(ask: AskExtender, manifests: Manifests, *, names_only: bool) -> bytes:
    """Encodes the body of a request. Raises KeyError if the pod, or one of its victims, is gone."""
    pod = manifests.pod(ask.pod.uid)
    if ask.verb == PREEMPT:
        whole, meta = b"null", b"null"
        if names_only:
            meta = _encode_victims(ask.victims, lambda uid: b'{"UID":%b}' % _encode(uid))
        else:
            whole = _encode_victims(ask.victims, manifests.pod)
        return b'{"Pod":%b,"NodeNameToVictims":%b,"NodeNameToMetaVictims":%b}' % (pod, whole, meta)
    if names_only:
        return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, _encode(ask.nodes))
    items = b",".join(_find_nodes(ask.nodes, manifests))
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, items)


def encode_binding(action: BindPod) -> bytes:
    """Encodes the body of a request to bind."""
    pod = action.pod
    names = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid}
    return _encode({**names, "Node": action.node})


def _find_nodes(names: Iterable[str], manifests: Manifests) -> Iterable[bytes]:
    for name in names:
        try:
            yield manifests.node(name)
        except KeyError:
            # It has gone since it was asked about: nobody will be placed there.
            continue


def _encode_victims(
    victims: Mapping[str, NodeVictims], encode_pod: Callable[[str], bytes]
) -> bytes:
    by_node = (
        b'%b:{"Pods":[%b],"NumPDBViolations":%d}'
        % (_encode(name), b",".join(map(encode_pod, there.uids)), there.violations)
        for name, there in sorted(victims.items())
    )
    return b"{%b}" % b",".join(by_node)


class _TopLevel(msgspec.Struct):
    metadata: dict[str, msgspec.Raw] = {}
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


_TOP_LEVEL = msgspec.json.Decoder(_TopLevel)


def trim_manifest(raw: bytes | msgspec.Raw, *, managed_fields: bool) -> bytes:
    """Returns an object as in kube-scheduler's cache: without kind and apiVersion.

    Pods also lose their managed fields.
    """
    whole = _TOP_LEVEL.decode(raw)
    if not managed_fields:
        whole.metadata.pop("managedFields", None)
    return _encode(whole)


# What Go writes of a node even where there is nothing to say.
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def encode_manifest(kind: str, raw: Mapping[str, Any]) -> bytes:
    """Encodes an object that no API server has written, with the fields that Go adds."""
    status = dict(raw.get("status") or {})
    if kind == "Node":
        status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
        known = status.get("nodeInfo") or {}
        status["nodeInfo"] = {**dict.fromkeys(_NODE_INFO, ""), **known}
    spec = dict(raw.get("spec") or {})
    if kind == "Pod":
        spec["containers"] = [
            {"resources": {}, **container} for container in spec.get("containers") or ()
        ]
    return _encode({**raw, "spec": spec, "status": status})
