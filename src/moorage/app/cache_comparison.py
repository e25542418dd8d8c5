"""Compares the scheduler's cache of the cluster with the API server.

A signal starts a full comparison. Pods that are assumed for long are asked for one by one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from moorage.client.api import Requests
from moorage.client.api_errors import ApiError, ClientError
from moorage.client.listing import list_kind
from moorage.cluster import Cluster
from moorage.cluster.check import check
from moorage.cluster.extended.resources import extended_lines
from moorage.engine import Engine
from moorage.engine.actions import PodRef
from moorage.engine.events import Event, PodEnded, Unbound
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_status import FINISHED

from . import logs
from .bodies import pod_path, read_pod_state

# Users ask for a comparison: they get an answer, whatever else is logged.
_log = logs.make_log(__name__, logging.INFO)

# More would hide what matters.
_MOST_TOLD = 50

# How often pods that are assumed for long are asked for: one that was bound is mostly told of
# within a second.
_PERIOD_SECONDS = 30.0
# So many are asked for at a time, so that an outage of watches is no flood of requests.
_MOST_ASKED = 100


async def compare(api: Requests, cluster: Cluster) -> None:
    """Lists nodes and pods anew, and logs differences and all extended resources."""
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
    """Returns differences from a fresh list, and inconsistencies within the cache.

    While pods come and go, changes under way appear as differences.
    """
    listed_nodes = {node.name: node.name for node in nodes}
    known_nodes = {name: name for name in cluster.nodes.names(cluster.nodes.rows.tolist())}
    listed_pods = list(pods)
    running = {pod.uid: pod for pod in listed_pods if pod.node_name and not pod.is_finished}
    placed = {uid: pod for uid, pod in running.items() if not cluster.is_assumed(uid)}
    known = {uid: pod for uid, pod in cluster.pods.items() if not cluster.is_assumed(uid)}
    found = [
        *_membership("node", listed_nodes, known_nodes),
        *_membership("pod", _titles(placed), _titles(known)),
        *_elsewhere(placed, known),
        *_find_assumed(cluster, {pod.uid: pod for pod in listed_pods}),
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


def _find_assumed(cluster: Cluster, listed: Mapping[str, Pod]) -> Iterator[str]:
    """Yields pods that take room on a node although the API server does not have them there."""
    for uid in sorted(cluster.assumed):
        pod, seen = cluster.pods[uid], listed.get(uid)
        what = f"pod {pod.key} (uid {uid}) is assumed on node {pod.node_name}"
        if seen is None:
            yield f"{what} but does not exist"
        elif seen.is_finished:
            yield f"{what} but has ended"
        elif seen.node_name not in ("", pod.node_name):
            yield f"{what} but is on node {seen.node_name}"


class AssumedPods:
    """Asks the API server about bound pods that no watch has confirmed.

    Otherwise the room of a pod that neither a list nor a watch shows would never be freed.
    """

    def __init__(
        self,
        api: Requests,
        engine: Engine,
        tell: Callable[[Event], None],
        period_seconds: float = _PERIOD_SECONDS,
    ) -> None:
        self._api = api
        self._engine = engine
        self._tell = tell
        self._period_seconds = period_seconds
        #: Who was assumed already when it was last looked.
        self._known: set[str] = set()

    async def run(self) -> None:
        """Looks again and again until cancelled."""
        while True:
            await asyncio.sleep(self._period_seconds)
            await self.look()

    async def look(self) -> None:
        """Asks for pods that were bound before the last look, and reports what became of them.

        A pod that is still on its way to its node is left to the task that binds it.
        """
        cluster, placement = self._engine.cluster, self._engine.placement
        bound = {uid for uid in cluster.assumed if placement(uid) is None}
        overdue = [cluster.pods[uid] for uid in sorted(bound & self._known)[:_MOST_ASKED]]
        self._known = bound
        for pod in overdue:
            try:
                event = await self._ask(pod)
            except Exception as error:  # noqa: BLE001 - it is asked for again
                _log.warning("Could not ask for an assumed pod", pod=pod.key, error=str(error))
                return
            if event is not None:
                _log.warning(
                    "A pod that was bound is not on its node",
                    pod=pod.key,
                    node=pod.node_name,
                    found=type(event).__name__,
                )
                self._tell(event)

    async def _ask(self, pod: Pod) -> Event | None:
        """Returns what became of a pod; None if it is on its node."""
        try:
            seen = read_pod_state(await self._api.get(pod_path(PodRef.to(pod))))
        except ApiError as error:
            if error.is_not_found:
                return PodEnded(pod.uid)
            raise
        if seen.metadata.uid != pod.uid or seen.status.phase in FINISHED:
            return PodEnded(pod.uid)
        return None if seen.spec.node_name else Unbound(pod.uid)
