"""Server-side apply on stored objects."""

from __future__ import annotations

from .api import Api
from .errors import bad_request, invalid, required
from .expecting import expect_name, expect_namespace
from .kinds import Kind
from .options import Write
from .patching.apply import Applied, apply, first
from .patching.managers import Manager
from .patching.shape import shape_of
from .tables import Entry
from .wire import Json, now_text


def apply_object(
    api: Api, kind: Kind, at: tuple[str, str], raw: Json, options: Write
) -> tuple[Entry, bool]:
    """Applies a configuration to the object of a namespace and name; whether it was made."""
    namespace, name = at
    if not options.named:
        fault = required("fieldManager", "is required for apply patch")
        raise invalid("meta.k8s.io", "PatchOptions", "", [fault])
    if not raw.get("kind") or not raw.get("apiVersion"):
        raise bad_request("an applied configuration must name its apiVersion and kind")
    config = kind.known(raw)
    metadata = config.setdefault("metadata", {})
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    metadata.setdefault("name", name)
    expect_name(metadata, name)
    expect_namespace(kind, metadata, namespace)
    manager = Manager(
        options.manager,
        "Apply",
        options.subresource,
        kind.api_version,
        now_text(api.clock()),
        frozenset(),
    )
    wanted = Applied(config, shape_of(kind.schema), manager, options.force)
    entry = api.find(kind, namespace, name)
    if entry is None:
        if options.subresource:
            return api.get(kind, namespace, name), False
        return api.create(kind, namespace, first(wanted), options), True
    live = kind.view.outward(entry.object) if kind.view else entry.object
    write = api.update_status if options.subresource else api.update
    return write(kind, namespace, name, apply(live, wanted), options), False
