"""Templates of pods by what is in them: short names for versions of a template."""

from __future__ import annotations

import hashlib

import msgspec

from mooring.embedded.wire import Json

HASH_LABEL = "pod-template-hash"

# No vowels and nothing that looks like another letter, so that no words come out.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 10

_canonical = msgspec.json.Encoder(order="deterministic").encode


def hash_of(template: Json, collisions: int = 0) -> str:
    """A short name for a template; `collisions` gives another one for the same."""
    digest = hashlib.sha256(_canonical([template, collisions])).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_LENGTH])


def without_hash(template: Json) -> Json:
    """The template that a set of pods was made from."""
    metadata = dict(template.get("metadata") or {})
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def with_label(template: Json, key: str, value: str) -> Json:
    """The template with one more label on its pods."""
    metadata = dict(template.get("metadata") or {})
    labels = {**(metadata.get("labels") or {}), key: value}
    return {**template, "metadata": {**metadata, "labels": labels}}
