"""What is left out of a pod, or of a template of pods, and is filled in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .plain import Json, fill

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

# Read, write for the owner, read for the rest: 0644.
_FILE_MODE = 420


def default_pod_spec(spec: Json) -> None:
    """Fills in the spec of a pod or template."""
    fill(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        schedulerName="default-scheduler",
        securityContext={},
        terminationGracePeriodSeconds=30,
    )
    for container in containers(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def containers(spec: Json) -> Iterator[Json]:
    """All containers of a pod, of whichever list."""
    for name in CONTAINERS:
        yield from spec.get(name) or ()


def _default_container(container: Json) -> None:
    fill(
        container,
        imagePullPolicy=_pull_policy(container.get("image", "")),
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    for port in container.get("ports") or ():
        fill(port, protocol="TCP")
    for name in _PROBES:
        if isinstance(container.get(name), dict):
            _default_probe(container[name])
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            fill(reference, apiVersion="v1")


def _default_probe(probe: Json) -> None:
    fill(probe, failureThreshold=3, periodSeconds=10, successThreshold=1, timeoutSeconds=1)
    if "httpGet" in probe:
        fill(probe["httpGet"], path="/", scheme="HTTP")


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_volume(volume: Json) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if isinstance(volume.get(source), dict):
            fill(volume[source], defaultMode=_FILE_MODE)
    host_path: Any = volume.get("hostPath")
    if isinstance(host_path, dict):
        fill(host_path, type="")
