"""Whether the scheduler's picture of the cluster is the API server's, asked for by a signal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mooring.client.errors import ClientError
from mooring.client.listing import list_kind
from mooring.client.requests import Requests
from mooring.cluster import Cluster
from mooring.cluster.check import check
from mooring.cluster.extended_figures import extended_lines
from mooring.objects.node import Node
from mooring.objects.pod import Pod

from . import logs

_log = logs.named(__name__)

# More would hide what matters.
_MOST_TOLD = 50


async def compare(api: Requests, cluster: Cluster) -> None:
    """Lists nodes and pods anew and logs what differs, and what extended resources there are."""
    try:
        nodes = await list_kind(api, "Node", _log_unreadable)
        pods = await list_kind(api, "Pod", _log_unreadable)
    except ClientError as error:
        _log.error("Could not compare the cache with the API server", error=str(error))
        return
    found = differences(cluster, nodes, pods)
    for difference in found[:_MOST_TOLD]:
        _log.warning("The cache differs from the API server", difference=difference)
    _log.info(
        "Compared the cache with the API server",
        nodes=len(nodes),
        pods=len(pods),
        differences=len(found),
    )
    for line in extended_lines(cluster.extended):
        _log.info("Extended resource", figures=line)


def _log_unreadable(kind: str, key: str, problem: str) -> None:
    _log.error("Left out an object that cannot be read", kind=kind, object=key, problem=problem)


def differences(cluster: Cluster, nodes: Iterable[Node], pods: Iterable[Pod]) -> list[str]:
    """What differs from a fresh list, and what does not follow from the objects that are known.

    While pods come and go, what is on its way shows up as a difference.
    """
    listed_nodes = {node.name: node.name for node in nodes}
    known_nodes = {name: name for name in cluster.nodes.names(cluster.nodes.rows.tolist())}
    placed = {pod.uid: pod for pod in pods if pod.node_name and not pod.is_finished}
    known = {uid: pod for uid, pod in cluster.pods.items() if not cluster.is_assumed(uid)}
    found = [
        *_membership("node", listed_nodes, known_nodes),
        *_membership("pod", _titles(placed), _titles(known)),
        *_elsewhere(placed, known),
    ]
    try:
        check(cluster)
    except AssertionError as error:
        found.append(f"inconsistent: {error}")
    return found


def _titles(pods: Mapping[str, Pod]) -> dict[str, str]:
    return {uid: f"{pod.key} (uid {uid})" for uid, pod in pods.items()}


def _membership(what: str, listed: Mapping[str, str], known: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(listed.keys() - known.keys()):
        yield f"{what} {listed[key]} exists but is not known"
    for key in sorted(known.keys() - listed.keys()):
        yield f"{what} {known[key]} is known but does not exist"


def _elsewhere(placed: Mapping[str, Pod], known: Mapping[str, Pod]) -> Iterator[str]:
    for uid in sorted(placed.keys() & known.keys()):
        there, here = placed[uid].node_name, known[uid].node_name
        if there != here:
            yield f"pod {placed[uid].key} is on node {there}, not on {here}"
