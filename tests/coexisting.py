"""Pods that tolerate no others, and those that everybody tolerates."""

from __future__ import annotations

from typing import Any

from moorage.objects.coexist import (
    ANNOTATION,
    DAEMONSET_AND_STATIC_PODS,
    GROUP,
    NAMESPACE_LABEL,
    TRUSTED,
    stamp_of,
)
from moorage.objects.daemons import MIRROR
from moorage.objects.decode import from_builtins
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace
from tests.builders import Manifest, pod


def namespace(name: str = "default", *, trusted: bool = True) -> Namespace:
    """A namespace whose exclusive pods count however they were bound, or only as others do."""
    labels = {NAMESPACE_LABEL: TRUSTED if trusted else "other"}
    made = from_builtins("Namespace", {"metadata": {"name": name, "labels": labels}})
    assert isinstance(made, Namespace)
    return made


# Metadata

DAEMON: Manifest = {
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
    ]
}
MIRRORED: Manifest = {"annotations": {MIRROR: "0123"}}
ANNOTATED: Manifest = {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}

#: Exclusive, but for pods of its namespace with the same label.
TOGETHER: Manifest = {
    "annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS, GROUP: "label:app"},
}


def placed(pod: Pod, node: str) -> Pod:
    """A pod that a scheduler with the policy has bound."""
    return pod.on(node, stamp_of(pod))


def exclusive(
    name: str = "exclusive", node: str = "", *, spec: Manifest | None = None, **given: Any
) -> Pod:
    """A pod with the policy as a field; with a node, bound there by a scheduler."""
    said = {"coexistPolicy": DAEMONSET_AND_STATIC_PODS}
    made = pod(name, spec={**said, **(spec or {})}, **given)
    return placed(made, node) if node else made


def annotated(name: str = "annotated", node: str = "", **given: Any) -> Pod:
    """A pod with the policy as an annotation; with a node, bound there by a scheduler."""
    made = pod(name, metadata=ANNOTATED, **given)
    return placed(made, node) if node else made


def bound_around(name: str = "around", node: str = "n", **given: Any) -> Pod:
    """An exclusive pod with its node in the manifest."""
    return pod(name, node=node, metadata=ANNOTATED, **given)


def daemon(name: str = "daemon", node: str = "", **given: Any) -> Pod:
    return pod(name, node=node, metadata=DAEMON, **given)


def static(name: str = "static", node: str = "", **given: Any) -> Pod:
    return pod(name, node=node, metadata=MIRRORED, **given)


def exclusive_daemon(name: str = "exclusive-daemon", node: str = "", **given: Any) -> Pod:
    return exclusive(name, node, metadata=DAEMON, **given)
