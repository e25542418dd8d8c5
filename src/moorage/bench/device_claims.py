"""Devices and claims of workloads: what drivers publish and what was handed out before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from random import Random

from msgspec.structs import replace

from moorage.engine import Engine
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodResourceClaim, PodSpec
from moorage.objects.resource_claim import FINALIZER, ResourceClaim
from moorage.plugins.dynamic_resources.dynamic_resources import DynamicResources
from moorage.plugins.dynamic_resources.preparation import PreparedClaims

from .cases import NotPlaced
from .operations import CreateResourceDriver
from .templates import Manifest


def publish(operation: CreateResourceDriver, node_names: Iterable[str]) -> Iterator[Manifest]:
    """Yields the slices of a driver, as those of scheduler_perf's own driver."""
    for name in node_names:
        if fnmatchcase(name, operation.nodes):
            yield _slice(operation.driver_name, name, operation.max_claims_per_node)


def _slice(driver: str, node_name: str, count: int) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node_name},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 0, "resourceSliceCount": 1},
            "devices": [_device(number) for number in range(count)],
        },
    }


def _device(number: int) -> Manifest:
    return {
        "name": f"instance-{number}",
        "attributes": {
            "model": {"string": "A100"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": number % 2},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    }


class ClaimFiller:
    """Gives claims devices of random nodes, the same in every run."""

    def __init__(self, engine: Engine) -> None:
        self._nodes = engine.cluster.nodes
        self._random = Random(1)
        self._plugin = DynamicResources()

    def fill(self, namespace: str) -> Iterator[ResourceClaim]:
        """Yields the claims of a namespace without devices, each with some.

        The caller must apply each before the next one is asked for. An empty namespace means all.
        """
        for claim in list(self._nodes.devices.claims):
            if claim.allocation is None and namespace in ("", claim.namespace):
                yield self._fill(claim)

    def _fill(self, claim: ResourceClaim) -> ResourceClaim:
        pod, nodes = _user(claim), self._nodes
        prepared = self._plugin.prepare_claims(pod, nodes)
        if isinstance(prepared, PreparedClaims):
            rows = nodes.rows
            feasible = rows[self._plugin.filter(prepared, nodes, rows).ok].tolist()
            decided = feasible and self._plugin.decide(pod, nodes, self._random.choice(feasible))
            if decided:
                made = decided.allocations[claim.key]
                return replace(claim, allocation=made, finalizers=(FINALIZER,))
        raise NotPlaced(f"there are no devices for claim {claim.key}")


def _user(claim: ResourceClaim) -> Pod:
    """Returns a pod that uses the claim alone."""
    reference = PodResourceClaim(name="claim", resource_claim_name=claim.name)
    spec = PodSpec(resource_claims=(reference,))
    return Pod(namespace=claim.namespace, name="user", uid="user", spec=spec)
