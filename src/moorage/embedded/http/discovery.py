"""Discovery: which groups, versions and resources there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.embedded.api.kind import ServedKind, ServedKinds, Subresource
from moorage.embedded.api.schema import KUBERNETES_VERSION
from moorage.embedded.request_refusals import no_such_path
from moorage.embedded.store.object_store import Json

_AGGREGATED = "apidiscovery.k8s.io"

VERSION: Json = {
    "major": KUBERNETES_VERSION.split(".")[0],
    "minor": KUBERNETES_VERSION.split(".")[1],
    "gitVersion": f"v{KUBERNETES_VERSION}-moorage",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}


def wants_aggregated(accept: str) -> str:
    """Returns the version of aggregated discovery that a client asks for; empty for none."""
    for each in accept.split(","):
        if f"g={_AGGREGATED}" in each and "as=APIGroupDiscoveryList" in each:
            for version in ("v2", "v2beta1"):
                if f"v={version}" in each.replace(" ", "").split(";"):
                    return version
    return ""


def core_versions(host: str) -> Json:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": addresses,
    }


def groups(kinds: ServedKinds) -> Json:
    listed = [_group(name, versions) for name, versions in _versions(kinds).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(kinds: ServedKinds, name: str) -> Json:
    versions = _versions(kinds).get(name)
    if not versions:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resources(kinds: ServedKinds, group_name: str, version: str) -> Json:
    listed = [each for each in kinds if (each.group, each.version) == (group_name, version)]
    if not listed:
        raise no_such_path()
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": listed[0].api_version,
        "resources": [entry for kind in listed for entry in _resource(kind)],
    }


def aggregate(kinds: ServedKinds, version: str, *, core: bool) -> Json:
    """Returns all groups with their resources, in one answer."""
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {},
            "versions": [
                {
                    "version": each,
                    "resources": [_describe(kind) for kind in _of(kinds, name, each)],
                    "freshness": "Current",
                }
                for each in versions
            ],
        }
        for name, versions in _versions(kinds).items()
        if (name == "") is core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{_AGGREGATED}/{version}",
        "metadata": {},
        "items": items,
    }


def _versions(kinds: ServedKinds) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind in kinds:
        versions = found.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    return found


def _of(kinds: ServedKinds, group_name: str, version: str) -> Iterator[ServedKind]:
    return (each for each in kinds if (each.group, each.version) == (group_name, version))


def _group(name: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource(kind: ServedKind) -> Iterator[Json]:
    entry: Json = {
        "name": kind.plural,
        "singularName": kind.one,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    entry |= _short_names(kind)
    yield entry
    for part in kind.subresources.values():
        shape = _shape(kind, part)
        entry = {
            "name": f"{kind.plural}/{part.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": shape["kind"],
            "verbs": list(part.verbs),
        }
        if part.kind:
            entry |= {"group": shape["group"], "version": shape["version"]}
        yield entry


def _describe(kind: ServedKind) -> Json:
    found: Json = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.one,
        "verbs": list(kind.verbs),
    }
    found |= _short_names(kind)
    if kind.subresources:
        found["subresources"] = [
            {"subresource": each.name, "responseKind": _shape(kind, each), "verbs": [*each.verbs]}
            for each in kind.subresources.values()
        ]
    return found


def _shape(kind: ServedKind, part: Subresource) -> dict[str, Any]:
    if part.kind:
        return {"group": part.group, "version": part.version, "kind": part.kind}
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _short_names(kind: ServedKind) -> Json:
    """Returns the short names and categories of a kind."""
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: value for key, value in names.items() if value}
