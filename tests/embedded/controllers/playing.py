"""A cluster without nodes' agents: the test plays the kubelet and lets the controllers settle."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.embedded.api.decoding import now_text
from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import DeleteOptions, Propagation
from moorage.embedded.controllers.runner import run_controllers
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.kinds.custom_resources import serve_custom_resources
from moorage.embedded.kinds.quotas import enforce_quotas
from moorage.embedded.server import make_initial_objects
from moorage.embedded.store.object_store import ObjectStore
from tests.virtual_time import run_virtually

Json = dict[str, Any]

# An event reaches its controller after two or three turns of the loop.
_QUIET_TURNS = 12
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Play:
    """The server of a cluster whose controllers run, in virtual time."""

    def __init__(self, history_limit: int = 100_000) -> None:
        store = ObjectStore(history_limit=history_limit)
        loop = asyncio.get_running_loop()
        self.api = ObjectApi(
            store, ServedKinds(catalogue()), lambda: BEGIN + timedelta(seconds=int(loop.time()))
        )
        serve_custom_resources(self.api)
        enforce_quotas(self.api)
        make_initial_objects(self.api)

    async def settle(self) -> None:
        """Lets the controllers do what there is to do now."""
        quiet, version = 0, self.api.store.version
        while quiet < _QUIET_TURNS:
            await asyncio.sleep(0)
            quiet = quiet + 1 if version == self.api.store.version else 0
            version = self.api.store.version

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.settle()

    def create(self, resource: str, name: str, spec: Json | None = None, **more: Any) -> Json:
        kind = self.api.kinds[resource]
        metadata = {"name": name, **more.pop("metadata", {})}
        item = {"metadata": metadata, **more}
        if spec is not None:
            item["spec"] = spec
        return self.api.create(kind, "default" if kind.namespaced else "", item).object

    def get(self, resource: str, name: str, namespace: str = "default") -> Json:
        kind = self.api.kinds[resource]
        return self.api.get(kind, namespace if kind.namespaced else "", name).object

    def objects(self, resource: str) -> list[Json]:
        table = self.api.store.table(self.api.kinds[resource].table)
        return [entry.object for entry in table.in_order()]

    def names(self, resource: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.objects(resource)]

    def change(self, resource: str, name: str, **spec: Any) -> Json:
        """Changes fields of the spec."""
        item = self.get(resource, name)
        item["spec"] |= spec
        return self.update(resource, item)

    def update(self, resource: str, item: Json) -> Json:
        kind, metadata = self.api.kinds[resource], item["metadata"]
        namespace = metadata.get("namespace", "")
        return self.api.update(kind, namespace, metadata["name"], item).object

    def set_status(self, resource: str, item: Json, **status: Any) -> Json:
        kind, metadata = self.api.kinds[resource], item["metadata"]
        item["status"] = {**(item.get("status") or {}), **status}
        namespace = metadata.get("namespace", "")
        return self.api.update_status(kind, namespace, metadata["name"], item).object

    def delete(
        self,
        resource: str,
        name: str,
        propagation: Propagation = "Background",
        grace: int | None = None,
    ) -> None:
        kind = self.api.kinds[resource]
        options = DeleteOptions(propagation=propagation, grace_seconds=grace)
        self.api.delete(kind, "default" if kind.namespaced else "", name, options)

    # The kubelet's part.

    def pods(self, *, going: bool = False) -> list[Json]:
        found = self.objects("pods")
        return [each for each in found if ("deletionTimestamp" in each["metadata"]) is going]

    def phase(self, pod: Json, phase: str, *, ready: bool = False) -> None:
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": now_text(self.api.clock()),
        }
        self.set_status("pods", pod, phase=phase, conditions=[condition])

    def run(self, pods: Iterable[Json] | None = None, *, ready: bool = True) -> None:
        """Pods begin to run; without any named, all that are pending."""
        waiting = [each for each in self.pods() if each["status"]["phase"] == "Pending"]
        for each in waiting if pods is None else pods:
            self.phase(each, "Running", ready=ready)

    def end(self, pods: Iterable[Json], phase: str = "Succeeded") -> None:
        for each in pods:
            self.phase(each, phase)

    def bind(self, pod: Json, node: str) -> Json:
        def bound(stored: Json) -> Json:
            stored["spec"]["nodeName"] = node
            return stored

        metadata = pod["metadata"]
        kind = self.api.kinds["pods"]
        return self.api.edit(kind, metadata["namespace"], metadata["name"], bound).object

    def sweep(self) -> None:
        """Pods that are to go are gone."""
        for each in self.pods(going=True):
            self.delete("pods", each["metadata"]["name"], grace=0)


def played(
    test: Callable[..., Awaitable[None]] | None = None, *, history_limit: int = 100_000
) -> Any:
    """Runs a test with a cluster, in virtual time, as a plain function."""
    if test is None:
        return functools.partial(played, history_limit=history_limit)
    written = test

    def run(**given: Any) -> None:
        async def main() -> None:
            cluster = Play(history_limit)
            controllers = asyncio.create_task(run_controllers(cluster.api))
            try:
                await cluster.settle()
                await written(cluster, **given)
                assert not controllers.done()
            finally:
                controllers.cancel()
                await asyncio.gather(controllers, return_exceptions=True)

        run_virtually(main())

    functools.update_wrapper(run, written)
    del run.__wrapped__  # type: ignore[attr-defined]
    signature = inspect.signature(written)
    left = list(signature.parameters.values())[1:]
    run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
    return run


def template(**labels: str) -> Json:
    """A template of pods that ask for nothing."""
    return {
        "metadata": {"labels": labels or {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    }


def workload(**spec: Any) -> Json:
    """The spec of anything that makes pods from a template."""
    return {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
