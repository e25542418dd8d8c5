"""DefaultBinder: the pod is bound by the API server, as the engine's Bind action asks for."""

from __future__ import annotations

from moorage.cluster import Change, Scope
from moorage.framework.plugin import Bind
from moorage.objects.pod import Pod


class DefaultBinder(Bind):
    """Stands in a profile for the ordinary way of binding.

    It does nothing by itself: what performs a Bind action that no plugin has taken on writes
    the binding to the API server.
    """

    name = "DefaultBinder"
    reads = Change.NONE
    scope = Scope.ROW

    async def bind(self, pod: Pod, node_name: str) -> bool:
        return False
