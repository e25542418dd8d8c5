"""Volume attachments, found by node and by volume."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.objects.csi import VolumeAttachment


class Attachments:
    """The attachments by name."""

    def __init__(self) -> None:
        self._known: dict[str, VolumeAttachment] = {}
        self._on: dict[str, dict[str, VolumeAttachment]] = {}
        self._of: dict[str, dict[str, VolumeAttachment]] = {}

    def get(self, name: str) -> VolumeAttachment | None:
        return self._known.get(name)

    def on(self, node_name: str) -> tuple[VolumeAttachment, ...]:
        return tuple(self._on.get(node_name, {}).values())

    def of(self, volume_name: str) -> tuple[VolumeAttachment, ...]:
        return tuple(self._of.get(volume_name, {}).values())

    def put(self, item: VolumeAttachment) -> None:
        self.drop(item.name)
        self._known[item.name] = item
        self._on.setdefault(item.node_name, {})[item.name] = item
        self._of.setdefault(item.volume_name, {})[item.name] = item

    def drop(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is None:
            return
        for index, key in ((self._on, known.node_name), (self._of, known.volume_name)):
            del index[key][name]
            if not index[key]:
                del index[key]

    def __iter__(self) -> Iterator[VolumeAttachment]:
        return iter(self._known.values())
