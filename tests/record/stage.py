"""A scheduler whose cluster obeys it at once, and that is recorded."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from moorage.app.scheduler import Feed, Scheduler
from moorage.config import FeatureGates, default, load
from moorage.engine import Engine
from moorage.engine.actions import Action, BindPod, EvictPod, WriteVolumes, encode
from moorage.engine.events import BindingFailed, Bound, Evicted
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from moorage.objects.decode import from_builtins
from moorage.record.format import Setup
from moorage.record.recorder import Recorder
from moorage.record.segments import RecordSettings

Manifest = dict[str, Any]


class Stage:
    """The real loop, over a cluster that does what is asked for: bindings of some pods fail."""

    def __init__(
        self,
        path: Path,
        *,
        settings: RecordSettings | None = None,
        config: str | None = None,
        gates: FeatureGates | None = None,
    ) -> None:
        gates = gates or FeatureGates()
        plugins = registry()
        known = known_plugins(plugins)
        made = default(known, gates) if config is None else load(config, known=known, gates=gates)
        self.engine = Engine(made, plugins)
        self.recorder = Recorder(path, Setup(config=config, feature_gates=dict(gates)), settings)
        self.now = 1000.25
        self.scheduler = Scheduler(self.engine, lambda: self.now, self.recorder)
        self.feed = Feed(self.scheduler.tell, self.recorder)
        self.backlog = 0
        self.actions: list[Action] = []
        self.pods: dict[str, Manifest] = {}
        self._versions = 0
        self._there: set[tuple[str, str, str]] = set()
        #: Names of pods that cannot be bound.
        self.stubborn: set[str] = set()
        #: Whether what is decided takes effect.
        self.obeys = True

    def apply(self, *manifests: Manifest) -> None:
        for each in manifests:
            self._versions += 1
            meta = {**each["metadata"], "resourceVersion": str(self._versions)}
            manifest = {**each, "metadata": meta}
            self._there.add(_key(each))
            if each["kind"] == "Pod":
                self.pods[meta["uid"]] = manifest
            raw = msgspec.json.encode(manifest)
            self.feed.applied(from_builtins(each["kind"], manifest), msgspec.Raw(raw))

    def remove(self, *manifests: Manifest) -> None:
        """Removes what is there, as a reflector tells it once."""
        for each in manifests:
            if _key(each) not in self._there:
                continue
            self._there.discard(_key(each))
            if each["kind"] == "Pod":
                self.pods.pop(each["metadata"]["uid"], None)
            self.feed.removed(from_builtins(each["kind"], each))

    def perform(self, action: Action) -> None:
        self.actions.append(action)
        if not self.obeys:
            return
        match action:
            case BindPod(pod, node):
                known = self.pods.get(pod.uid)
                if known is None or pod.name in self.stubborn:
                    self.scheduler.tell(BindingFailed(pod.uid, "no"))
                    return
                self.scheduler.tell(Bound(pod.uid))
                self.apply({**known, "spec": {**known["spec"], "nodeName": node}})
            case WriteVolumes(pod):
                self.scheduler.tell(BindingFailed(pod.uid, "no volumes today"))
            case EvictPod(pod, preemptor):
                self.scheduler.tell(Evicted(pod.uid, preemptor.uid))
                if pod.uid in self.pods:
                    self.remove(self.pods[pod.uid])

    async def play(self, *moments: tuple[float, Iterable[Any]]) -> None:
        """Calls what is to happen at each time, and lets the scheduler settle after each."""
        loop = asyncio.create_task(self.scheduler.run())
        self.scheduler.lead(self)
        try:
            for now, calls in moments:
                self.now = now
                for call in calls:
                    call()
                self.scheduler.wake()
                await settle()
                # So that whether a segment is full is not a matter of luck.
                self.recorder.flush()
        finally:
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)

    def told(self) -> list[Any]:
        return [json.loads(encode(action)) for action in self.actions]


def _key(manifest: Manifest) -> tuple[str, str, str]:
    meta = manifest["metadata"]
    return manifest["kind"], meta.get("namespace", ""), meta["name"]


async def settle(turns: int = 60) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def lines_of(path: Path) -> list[Any]:
    """The lines of a segment."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    """Writes a segment, not compressed."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
