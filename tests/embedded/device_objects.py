"""Device classes, claims, templates and slices for tests of the embedded cluster."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CLAIMS = "resourceclaims.resource.k8s.io"
TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
DEVICE_CLASSES = "deviceclasses.resource.k8s.io"
SLICES = "resourceslices.resource.k8s.io"
TAINT_RULES = "devicetaintrules.resource.k8s.io"

#: Who allocates a claim sets it, and the controller removes it when the devices are free again.
PROTECTION = "resource.kubernetes.io/delete-protection"


def claim_spec(*requests: Json, **more: Any) -> Json:
    """The spec of a claim; without requests, of one GPU."""
    one = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {"devices": {"requests": list(requests) or [one], **more}}


def exactly(name: str = "gpu", **way: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **way}}


def selecting(expression: str) -> Json:
    return exactly(selectors=[{"cel": {"expression": expression}}])


def device(name: str = "gpu-0", **more: Any) -> Json:
    return {"name": name, **more}


def slice_spec(*devices: Json, **more: Any) -> Json:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n", "devices": list(devices)}
    return {**spec, **more}


def allocation(device: str = "gpu-0", request: str = "gpu") -> Json:
    result = {"request": request, "driver": "gpu.example.com", "pool": "n", "device": device}
    return {"devices": {"results": [result]}}


def user(pod: Json) -> Json:
    metadata = pod["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
