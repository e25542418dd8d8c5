"""Config maps and secrets: what their keys may be, and that some never change."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from mooring.embedded.errors import Fault, forbidden_field, invalid_value, too_long

from .plain import Json, Rules, fill, part

_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MOST_BYTES = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"


class ConfigMaps(Rules):
    """Data by key, as text or as bytes."""

    parts: tuple[str, ...] = ("data", "binaryData")

    def default(self, item: Json) -> None:
        for name in self.parts:
            if not item.get(name):
                item.pop(name, None)

    def faults(self, item: Json) -> Iterator[Fault]:
        size = 0
        for name in self.parts:
            for key, value in part(item, name).items():
                if not _KEY.fullmatch(key):
                    yield invalid_value(f"{name}[{key}]", key, _KEY_TEXT)
                size += len(value)
        if size > _MOST_BYTES:
            yield too_long("", _MOST_BYTES)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if not old.get("immutable"):
            return
        if not item.get("immutable"):
            yield forbidden_field("immutable", _FROZEN)
        for name in self.parts:
            if part(item, name) != part(old, name):
                yield forbidden_field(name, _FROZEN)


class Secrets(ConfigMaps):
    """Data that is always bytes, though it may be written as text."""

    parts = ("data",)

    def default(self, item: Json) -> None:
        fill(item, type="Opaque")
        written = item.pop("stringData", None)
        if written:
            item["data"] = {**part(item, "data"), **{k: _base64(v) for k, v in written.items()}}
        super().default(item)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if item["type"] != old.get("type"):
            yield invalid_value("type", item["type"], "field is immutable")
        yield from super().update_faults(item, old)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
