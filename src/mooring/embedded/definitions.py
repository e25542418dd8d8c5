"""Serves custom resources while their definitions exist."""

from __future__ import annotations

from collections.abc import Iterator

from .api import Api
from .kinds import SCALE, STATUS, Kind, View
from .rules.custom import Custom
from .rules.plain import part
from .tables import Change
from .wire import Json

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_REPLICAS = ".spec.replicas"


def serve_custom_resources(api: Api) -> None:
    """Serves what is defined already, and follows what is defined from now on."""
    for entry in api.store.table(_DEFINITIONS).entries.values():
        _serve(api, entry.object)

    def follow(change: Change) -> None:
        if change.before is not None:
            for kind in _kinds(change.before.object):
                api.kinds.drop(kind)
        if change.gone:
            _empty(api, change.after.object)
        else:
            _serve(api, change.after.object)

    api.store.listen(_DEFINITIONS, follow)


def _serve(api: Api, definition: Json) -> None:
    for kind in _kinds(definition):
        api.store.open_table(kind.table, kind.fields_of)
        api.kinds.serve(kind)


def _empty(api: Api, definition: Json) -> None:
    """The objects of a definition go with it."""
    for kind in list(_kinds(definition))[:1]:
        for entry in list(api.store.table(kind.table).entries.values()):
            api.remove(kind, entry)


def _kinds(definition: Json) -> Iterator[Kind]:
    """One kind for each version that is served."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    stored = next(each["name"] for each in spec["versions"] if each.get("storage"))
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        name = version["name"]
        parts = part(version, "subresources")
        scalable = part(parts, "scale").get("specReplicasPath") == _REPLICAS
        yield Kind(
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
            rules=Custom(version),
            # Older objects may have been stored in the name of another version.
            view=_view(group, name, stored) if len(spec["versions"]) > 1 else None,
        )


def _view(group: str, shown: str, stored: str) -> View:
    """Versions differ in their name only: nothing is converted."""
    return View(
        lambda item: {**item, "apiVersion": f"{group}/{stored}"},
        lambda item: {**item, "apiVersion": f"{group}/{shown}"},
        {},
    )
