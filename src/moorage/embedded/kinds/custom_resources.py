"""Custom resources, and the definitions that bring them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from moorage.embedded.api.column import NAME, Column, age_column, first, read_path, since
from moorage.embedded.api.decoding import decode_known, fill, part
from moorage.embedded.api.kind import SCALE, STATUS, KindRules, KindView, ServedKind, make_built_in
from moorage.embedded.api.names import dns_1035_faults, subdomain_faults
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.request_refusals import Fault, bad_request, invalid_value, required
from moorage.embedded.store.object_store import Json, TableChange

from .json_schema import fill_defaults, prune, schema_faults, shape_faults

#: Groups that custom resources may not add to.
BUILT_IN_GROUPS = frozenset(
    (
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "metrics.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    )
)


class CustomRules(KindRules):
    """The rules of one version of a custom resource."""

    generation = True
    status_keeps_metadata = True

    def __init__(self, version: Json) -> None:
        self._schema = part(part(version, "schema"), "openAPIV3Schema")
        self.status = "status" in part(version, "subresources")

    def prune(self, raw: Any) -> Json:
        if not isinstance(raw, dict):
            raise bad_request("the object provided is unrecognized (must be of type object)")
        known = self._schema.get("properties") or {}
        anyhow: Json = {"apiVersion": {}, "kind": {}}
        item = prune(raw, {**self._schema, "properties": {**known, **anyhow}})
        given = decode_known("meta.v1.ObjectMeta", raw.get("metadata") or {}, "metadata")
        item.pop("metadata", None)
        return {"metadata": given, **item}

    def default(self, item: Json) -> None:
        fill_defaults(item, self._schema)

    def complete_new(self, item: Json) -> None:
        if self.status:
            item.pop("status", None)

    def faults(self, item: Json) -> Iterator[Fault]:
        body = {key: value for key, value in item.items() if key != "metadata"}
        schema = {**self._schema}
        schema["required"] = [
            each for each in schema.get("required") or () if each not in ("metadata",)
        ]
        yield from schema_faults(body, schema, "")

    def status_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from self.faults(item)

    def describe(self) -> Json:
        return self._schema or {"type": "object"}


def read_columns(version: Json) -> Sequence[Column]:
    """Reads the columns that a definition gives for its resources."""
    given = version.get("additionalPrinterColumns")
    return (NAME, *(_column(each) for each in given)) if given else (NAME, age_column())


def _column(given: Json) -> Column:
    steps, kind = read_path(str(given.get("jsonPath", ""))), str(given.get("type", "string"))

    def value(item: Json, now: datetime) -> Any:
        found = first(steps, item)
        if kind == "date":
            return _age(found, now) if isinstance(found, str) else None
        return found if isinstance(found, str | int | float | None) else str(found)

    return Column(str(given.get("name", "")), value, kind, int(given.get("priority") or 0))


def _age(moment: str, now: datetime) -> str:
    try:
        return since(moment, now)
    except (ValueError, TypeError):
        # Whatever a resource has there, be it no time at all or one without a zone.
        return "<invalid>"


class DefinitionRules(KindRules):
    """The rules of definitions; their resources are served as soon as they are stored."""

    status = True
    generation = True
    status_keeps_metadata = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind", "")
        fill(names, singular=kind.lower(), listKind=f"{kind}List")
        fill(spec, conversion={"strategy": "None"})

    def complete_new(self, item: Json) -> None:
        spec, now = item["spec"], item["metadata"]["creationTimestamp"]
        conditions = [
            {
                "type": name,
                "status": "True",
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }
            for name, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ]
        stored = [each.get("name") for each in spec.get("versions") or () if each.get("storage")]
        item["status"] = {
            "acceptedNames": spec["names"],
            "conditions": conditions,
            "storedVersions": stored,
        }

    def faults(self, item: Json) -> Iterator[Fault]:
        spec, name = item["spec"], item["metadata"]["name"]
        names, group = spec["names"], spec.get("group", "")
        yield from subdomain_faults("spec.group", group)
        if "." not in group or group in BUILT_IN_GROUPS:
            yield invalid_value("spec.group", group, "should be a domain of your own")
        yield from dns_1035_faults("spec.names.plural", names.get("plural", ""))
        if not names.get("kind"):
            yield required("spec.names.kind")
        if name != f"{names.get('plural')}.{group}":
            yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
        if spec.get("scope") not in ("Cluster", "Namespaced"):
            yield required("spec.scope", "must be Cluster or Namespaced")
        yield from _version_faults(spec.get("versions") or [])

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        spec, before = item["spec"], old["spec"]
        if spec.get("scope") != before.get("scope"):
            yield invalid_value("spec.scope", spec.get("scope"), "field is immutable")
        if spec["names"]["kind"] != before["names"]["kind"]:
            yield invalid_value("spec.names.kind", spec["names"]["kind"], "field is immutable")


def _version_faults(versions: list[Json]) -> Iterator[Fault]:
    if sum(1 for each in versions if each.get("storage")) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", len(versions), detail)
    for index, each in enumerate(versions):
        yield from dns_1035_faults(f"spec.versions[{index}].name", each.get("name", ""))
        at = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = part(part(each, "schema"), "openAPIV3Schema")
        if not schema:
            yield required(at, "schemas are required")
        yield from shape_faults(schema, at)


_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_REPLICAS = ".spec.replicas"


def serve_custom_resources(api: ObjectApi) -> None:
    """Serves the resources of all definitions, now and as they change."""
    for entry in api.store.table(_DEFINITIONS).entries.values():
        _serve_kinds(api, entry.object)

    def follow(change: TableChange) -> None:
        if change.before is not None:
            for kind in _kinds(change.before.object):
                api.kinds.drop(kind)
        if change.gone:
            _empty(api, change.after.object)
        else:
            _serve_kinds(api, change.after.object)

    api.store.listen(_DEFINITIONS, follow)


def _serve_kinds(api: ObjectApi, definition: Json) -> None:
    for kind in _kinds(definition):
        api.store.open_table(kind.table, kind.fields_of)
        api.kinds.serve(kind)


def _empty(api: ObjectApi, definition: Json) -> None:
    """Removes the objects of a definition that is gone."""
    for kind in list(_kinds(definition))[:1]:
        for entry in list(api.store.table(kind.table).entries.values()):
            api.remove(kind, entry)


def _kinds(definition: Json) -> Iterator[ServedKind]:
    """Yields one kind for each served version of a definition."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    stored = next(each["name"] for each in spec["versions"] if each.get("storage"))
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        name = version["name"]
        parts = part(version, "subresources")
        scalable = part(parts, "scale").get("specReplicasPath") == _REPLICAS
        yield ServedKind(
            group=group,
            version=name,
            kind=names["kind"],
            plural=names["plural"],
            singular=names["singular"],
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources={
                **({"status": STATUS} if "status" in parts else {}),
                **({"scale": SCALE} if scalable else {}),
            },
            rules=CustomRules(version),
            columns=read_columns(version),
            # Older objects may have been stored in the name of another version.
            view=_version_view(group, name, stored) if len(spec["versions"]) > 1 else None,
        )


def _version_view(group: str, shown: str, stored: str) -> KindView:
    """Returns the view of a version; versions differ in their name only."""
    return KindView(
        lambda item: {**item, "apiVersion": f"{group}/{stored}"},
        lambda item: {**item, "apiVersion": f"{group}/{shown}"},
        {},
    )


def definition_kinds() -> Iterator[ServedKind]:
    """Yields the kind of definitions."""
    yield make_built_in(
        "apiextensions.k8s.io",
        "apiextensions.v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        DefinitionRules(),
        parts=(STATUS,),
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
    )
