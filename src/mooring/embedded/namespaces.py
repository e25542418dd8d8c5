"""Finalizing a namespace: whoever has emptied it takes its finalizers off."""

from __future__ import annotations

from .api import Api, is_finished
from .expecting import expect_name, expect_uid, expect_version
from .options import Write
from .rules.plain import part
from .tables import Entry
from .wire import Json


def finalize(api: Api, name: str, raw: Json, options: Write) -> Entry:
    """Takes over the finalizers of the spec; without any a deleted namespace is gone."""
    kind = api.kinds["namespaces"]
    given, entry = kind.read(raw), api.get(kind, "", name)
    item, metadata = entry.object, given.setdefault("metadata", {})
    expect_name(metadata, name)
    expect_version(kind, entry, metadata.get("resourceVersion", ""))
    expect_uid(kind, item, metadata.get("uid", ""))
    item["spec"] = part(given, "spec")
    kept = api.edit(kind, "", name, lambda _: item, options)
    return api.remove(kind, kept, options) if is_finished(kind, item) else kept
