"""The scale of an object: how many replicas it has and should have, in one form for all kinds."""

from __future__ import annotations

from dataclasses import replace

from .api import Api
from .errors import bad_request, invalid, invalid_value
from .expecting import expect_name, expect_version
from .kinds import Kind
from .options import Write
from .rules.plain import part
from .tables import Entry
from .wire import Json, checked

#: Scales are never stored, but have a form of their own.
SCALES = Kind(group="autoscaling", version="v1", kind="Scale", plural="scales")

_KEPT_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: Kind, item: Json) -> Json:
    """The scale of a stored object."""
    spec, status, metadata = part(item, "spec"), part(item, "status"), item["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _KEPT_METADATA if key in metadata},
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": selector_text(spec.get("selector")),
        },
    }


def set_scale(api: Api, kind: Kind, namespace: str, name: str, raw: Json, options: Write) -> Entry:
    """Sets how many replicas an object should have."""
    scale = checked("autoscaling.v1.Scale", raw, 'Scale in version "v1"')
    metadata = part(scale, "metadata")
    entry = api.get(kind, namespace, name)
    expect_name(metadata, name)
    expect_version(kind, entry, metadata.get("resourceVersion", ""))
    replicas = part(scale, "spec").get("replicas", 0)
    if replicas < 0:
        fault = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", name, [fault])
    item = entry.object
    if not isinstance(item.get("spec"), dict):
        raise bad_request(f"{kind.resource} {name} has no spec to scale")
    item["spec"]["replicas"] = replicas
    return api.update(kind, namespace, name, item, replace(options, subresource=""))


def selector_text(selector: Json | None) -> str:
    """A selector as requests write it."""
    if not selector:
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    pairs = part(selector, "matchLabels")
    terms = [f"{key}={value}" for key, value in sorted(pairs.items())]
    return ",".join([*terms, *(_term(each) for each in selector.get("matchExpressions") or ())])


def _term(expression: Json) -> str:
    key, values = expression.get("key", ""), ",".join(expression.get("values") or ())
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case _:
            return f"!{key}"
