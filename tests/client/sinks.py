"""Sinks that remember, and the JSON they are fed with."""

from __future__ import annotations

import json
from typing import Any

import msgspec


class Told:
    """Remembers what it was told, briefly: +key@version, -key@version or ?kind key."""

    def __init__(self) -> None:
        self._log: list[str] = []
        self.raws: list[bytes | msgspec.Raw] = []
        self.problems: list[str] = []
        self.known: dict[str, str] = {}

    def applied(self, item: Any, raw: bytes | msgspec.Raw) -> None:
        key = getattr(item, "key", item.name)
        version = getattr(item, "resource_version", "")
        self._log.append(f"+{key}@{version}")
        self.raws.append(raw)
        self.known[key] = version

    def removed(self, item: Any) -> None:
        key = getattr(item, "key", item.name)
        self._log.append(f"-{key}@{getattr(item, 'resource_version', '')}")
        del self.known[key]

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        self._log.append(f"?{kind} {key}")
        self.problems.append(problem)

    def take(self) -> list[str]:
        """What it was told since the last time."""
        taken, self._log = self._log, []
        return taken


def pod(name: str, version: int, *, uid: str = "", spec: Any = None) -> dict[str, Any]:
    meta = {
        "name": name,
        "namespace": "x",
        "uid": uid or name,
        "resourceVersion": str(version),
    }
    return {"metadata": meta, "spec": spec or {"containers": [{"name": "c", "image": "i"}]}}


def page(*items: dict[str, Any], version: int = 100, go_on: str = "") -> bytes:
    meta = {"resourceVersion": str(version), **({"continue": go_on} if go_on else {})}
    return json.dumps({"kind": "PodList", "metadata": meta, "items": list(items)}).encode()


def line(change: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": change, "object": item}).encode()
