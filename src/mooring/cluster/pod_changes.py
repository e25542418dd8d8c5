"""What it changes on its row that a pod comes, goes or is seen again."""

from __future__ import annotations

from mooring.objects.pod import Pod

from .changes import Change
from .coexistence import coexistence_change


def counts_alike(known: Pod, seen: Pod) -> bool:
    """Whether a pod counts for the same as before, so that only the object is newer."""
    return (
        known.node_name == seen.node_name
        and known.spec is seen.spec
        and known.labels == seen.labels
        and known.terminating == seen.terminating
        and (known.status is seen.status or known.held == seen.held)
        and coexistence_change(known) == coexistence_change(seen)
    )


def pod_change(pod: Pod) -> int:
    """What the coming or going of a pod changes on its row; found out once per template."""
    known = pod.spec.__dict__.get("_change")
    if known is None:
        known = pod.spec.__dict__["_change"] = int(_spec_change(pod))
    return known | coexistence_change(pod)


def _spec_change(pod: Pod) -> Change:
    """What the coming or going of a pod of this template changes on its row."""
    kinds = Change.REQUESTED | Change.PODS
    if pod.spec.host_ports:
        kinds |= Change.PORTS
    if pod.spec.volumes:
        kinds |= Change.VOLUMES
    if pod.terms:
        kinds |= Change.TERMS
    return kinds
