"""Pods that tolerate no others, and those that everybody tolerates."""

from __future__ import annotations

from typing import Any

from mooring.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS, MIRROR
from mooring.objects.pod import Pod
from tests.builders import Manifest, pod

# Metadata

DAEMON: Manifest = {
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
    ]
}
MIRRORED: Manifest = {"annotations": {MIRROR: "0123"}}
ANNOTATED: Manifest = {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}


def exclusive(
    name: str = "exclusive", node: str = "", *, spec: Manifest | None = None, **given: Any
) -> Pod:
    """A pod with the policy as a field."""
    said = {"coexistPolicy": DAEMONSET_AND_STATIC_PODS}
    return pod(name, node=node, spec={**said, **(spec or {})}, **given)


def annotated(name: str = "annotated", node: str = "", **given: Any) -> Pod:
    """A pod with the policy as an annotation."""
    return pod(name, node=node, metadata=ANNOTATED, **given)


def daemon(name: str = "daemon", node: str = "", **given: Any) -> Pod:
    return pod(name, node=node, metadata=DAEMON, **given)


def static(name: str = "static", node: str = "", **given: Any) -> Pod:
    return pod(name, node=node, metadata=MIRRORED, **given)


def exclusive_daemon(name: str = "exclusive-daemon", node: str = "", **given: Any) -> Pod:
    return exclusive(name, node, metadata=DAEMON, **given)
