"""Binding a pod, whatever becomes of the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import uniform

from mooring.client.api import Requests
from mooring.client.api_errors import ApiError, OutcomeUnknown, Unreachable
from mooring.engine.actions import BindPod, PodRef
from mooring.engine.events import BindingFailed, Bound

from . import bodies

# How often a binding is asked for when the pod turns out not to be bound after all.
_MOST_TRIES = 3

NOT_LEADING = "this scheduler does not lead any more"

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Binder:
    """Asks the API server for a binding, and finds out what came of it.

    A request whose answer was lost may have been carried out. Before anything else is decided,
    the pod is read again, for as long as it takes: until then its place stays taken.
    """

    def __init__(self, api: Requests, may_act: Callable[[], bool]) -> None:
        self._api = api
        self.may_act = may_act

    async def bind(self, action: BindPod) -> Bound | BindingFailed:
        pod, node = action.pod, action.node
        problem = ""
        for _ in range(_MOST_TRIES):
            if not self.may_act():
                return BindingFailed(pod.uid, NOT_LEADING)
            try:
                await self._api.post(bodies.pod_path(pod, "binding"), bodies.encode_binding(action))
                return Bound(pod.uid)
            except Unreachable as error:
                return BindingFailed(pod.uid, f"binding rejected: {error}")
            except OutcomeUnknown as error:
                problem = str(error)
            except ApiError as error:
                problem = error.message
                if not (error.is_conflict or error.status >= 500):
                    break
            outcome = await self._settle(pod, node, problem)
            if outcome is not None:
                return outcome
        return BindingFailed(pod.uid, f"binding rejected: {problem}")

    async def _settle(self, pod: PodRef, node: str, problem: str) -> Bound | BindingFailed | None:
        """What came of a binding, as the pod itself tells; None when it is still unbound."""
        seen = await self._read_again(pod)
        if seen is None:
            return BindingFailed(pod.uid, f"binding rejected: {problem}")
        if seen == node:
            return Bound(pod.uid)
        if seen:
            return BindingFailed(pod.uid, f"binding rejected: the pod is on node {seen!r} already")
        return None

    async def _read_again(self, pod: PodRef) -> str | None:
        """The node that the pod is bound to, or none yet; None when that pod is gone."""
        pause = _FIRST_PAUSE
        while True:
            try:
                seen = bodies.read_pod_state(await self._api.get(bodies.pod_path(pod)))
                return seen.spec.node_name if seen.metadata.uid == pod.uid else None
            except ApiError as error:
                if error.is_not_found:
                    return None
            except (Unreachable, OutcomeUnknown):
                pass
            # Many bindings may wait for the same API server.
            await asyncio.sleep(pause * uniform(0.5, 1.5))
            pause = min(2 * pause, _LONGEST_PAUSE)
