"""Taking over the objects of another cluster as they are there: uids, owners, nodes and status.

What people keep secret is left out unless it is asked for: Secrets, the values of ConfigMaps, and
the environment of containers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.embedded.api.kind import ServedKind
from moorage.embedded.api.metadata import condition_of
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.controllers.revisions import (
    REVISION_HASH_LABEL,
    REVISION_LABEL,
    REVISIONS,
    make_revision,
    make_revision_data,
)
from moorage.embedded.hollow.pod_life import KUBELET
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json

#: An object of another cluster, and where it is written.
Copied = tuple[str, Json]

#: Kinds that are of no use in a copy: events and leases.
NOT_COPIED = frozenset(("Event", "Lease"))
SECRET = "Secret"

_DEFINITION, _NAMESPACE = "CustomResourceDefinition", "Namespace"

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ENVIRONMENT = ("env", "envFrom")
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
# Where the kinds of Kubernetes have the spec of a pod.
_POD_SPECS = (
    ("spec",),
    ("template", "spec"),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("data", "spec", "template", "spec"),
)

# Which template a pod of a daemon set was made from, and which one is the present one.
_GENERATION_OF_POD = "pod-template-generation"
_GENERATION_OF_DAEMON_SET = "deprecated.daemonset.template.generation"

# Reasons are given for so many refused objects; all are counted.
_MOST_REASONS = 10


@dataclass(slots=True)
class AdoptionReport:
    """What came of taking over a cluster."""

    adopted: Counter[str] = field(default_factory=Counter)
    #: What was left out by kind, because this server has no use for it.
    left_out: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)
    refused: int = 0
    #: Objects whose owner is not there, which would be garbage with it.
    orphans: int = 0

    def describe(self) -> Iterator[str]:
        """What the user should know, in sentences."""
        counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.adopted.items()))
        yield f"copied {counts or 'nothing'}"
        if self.left_out:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.left_out.items()))
            yield f"left out {kinds}"
        if self.orphans:
            yield (
                f"{self.orphans:,} objects have lost their owners, of which there is no copy: "
                "nothing makes them anew"
            )
        yield from self.refusals
        if self.refused > len(self.refusals):
            yield f"left out {self.refused - len(self.refusals):,} more for such reasons"


def adopt_all(api: ObjectApi, items: Iterable[Copied], *, with_values: bool) -> AdoptionReport:
    """Takes over all objects of kinds that are served; those that exist already stay as they are.

    `with_values` keeps secrets, values of ConfigMaps and the environment of containers, too.
    """
    adopter = _Adopter(api, with_values)
    # Definitions say which kinds there are, and namespaces come before what is in them.
    known = sorted(items, key=lambda copied: _ORDER.get(copied[1].get("kind", ""), len(_ORDER)))
    adopter.note_owners(known)
    for place, item in known:
        adopter.take(place, item)
    adopter.renew_revisions()
    return adopter.report


_ORDER = {_DEFINITION: 0, _NAMESPACE: 1}


class _Adopter:
    """Takes over objects one by one."""

    def __init__(self, api: ObjectApi, with_values: bool) -> None:
        self.report = AdoptionReport()
        self._api = api
        self._with_values = with_values
        self._uids: set[str] = set()
        self._revision = -1
        self._kinds: dict[tuple[str, str], ServedKind] = {}
        self._served: set[tuple[str, str]] = set()

    def note_owners(self, items: Iterable[Copied]) -> None:
        """Learns which owners there will be."""
        self._uids = {_metadata(item).get("uid", "") for _, item in items} - {""}

    def take(self, place: str, item: Json) -> None:
        kind = self._find_kind(item)
        if kind is None or kind.kind in NOT_COPIED or self._is_secret(kind):
            self.report.left_out[str(item.get("kind"))] += 1
            return
        try:
            if self._adopt(kind, item):
                self.report.adopted[kind.kind] += 1
        except RequestRefused as refusal:
            self._refuse(f"left out {place}: {kind.kind} {_title(item)}: {refusal.message}")

    def renew_revisions(self) -> None:
        """Writes the newest revision of each owner as this server would have written it.

        It recognises revisions byte by byte. Where there is no revision, its name is found on what
        was copied. Otherwise all pods of stateful sets and daemon sets would be replaced.
        """
        newest: dict[str, Json] = {}
        for item in self._objects(REVISIONS):
            for owner in _metadata(item).get("ownerReferences") or ():
                last = newest.get(owner["uid"])
                if last is None or last["revision"] < item["revision"]:
                    newest[owner["uid"]] = item
        hashes = _hashes_of_newest_pods(self._objects("pods"))
        for resource, label in (
            ("statefulsets.apps", REVISION_HASH_LABEL),
            ("daemonsets.apps", REVISION_LABEL),
        ):
            for owner in self._objects(resource):
                revision = newest.get(owner["metadata"]["uid"])
                if revision is not None:
                    self._rewrite({**revision, "data": make_revision_data(owner)})
                elif named := _hash_of_present_template(owner, hashes):
                    made = make_revision(owner, label, named)
                    namespace = owner["metadata"]["namespace"]
                    self._api.create(self._api.kinds[REVISIONS], namespace, made)

    def _rewrite(self, revision: Json) -> None:
        metadata = revision["metadata"]
        kind = self._api.kinds[REVISIONS]
        self._api.edit(kind, metadata["namespace"], metadata["name"], lambda _: revision)

    def _objects(self, resource: str) -> Iterator[Json]:
        table = self._api.store.table(self._api.kinds[resource].table)
        return (entry.object for entry in list(table.entries.values()))

    def _is_secret(self, kind: ServedKind) -> bool:
        return kind.kind == SECRET and not self._with_values

    def _adopt(self, kind: ServedKind, item: Json) -> bool:
        """Stores an object; returns whether it was not there yet."""
        metadata = _metadata(item)
        namespace = metadata.get("namespace") or "default" if kind.namespaced else ""
        if self._api.find(kind, namespace, metadata.get("name", "")) is not None:
            return False
        copy = item if self._with_values else _without_values(item, is_custom=not kind.schema)
        copy = {**copy, "metadata": self._own(metadata, copy)}
        if kind.kind == "Node":
            copy = _with_silence(copy)
        elif kind.kind == "Pod":
            copy = _with_phase(copy)
        if kind.namespaced:
            self._expect_namespace(namespace)
        self._api.adopt(kind, namespace, copy)
        return True

    def _own(self, metadata: Json, copy: Json) -> Json:
        """Returns metadata without owners that are not there: what they own would be garbage."""
        kept = dict(_metadata(copy))
        owners = metadata.get("ownerReferences") or ()
        present = [each for each in owners if self._stays(each)]
        if len(present) < len(owners):
            self.report.orphans += 1
            kept["ownerReferences"] = present
        return kept

    def _stays(self, owner: Any) -> bool:
        """Whether an owner is there; one of a kind that is not served counts as there."""
        if not isinstance(owner, dict) or owner.get("uid") in self._uids:
            return True
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        return (group, str(owner.get("kind"))) not in self._served

    def _expect_namespace(self, name: str) -> None:
        namespaces = self._api.kinds["namespaces"]
        if self._api.find(namespaces, "", name) is None:
            self._api.create(namespaces, "", {"metadata": {"name": name}})

    def _find_kind(self, item: Json) -> ServedKind | None:
        if self._revision != self._api.kinds.revision:
            self._revision = self._api.kinds.revision
            stored = [kind for kind in self._api.kinds if "list" in kind.verbs and not kind.view]
            self._kinds = {(kind.api_version, kind.kind): kind for kind in stored}
            self._served = {(kind.group, kind.kind) for kind in stored}
        return self._kinds.get((str(item.get("apiVersion")), str(item.get("kind"))))

    def _refuse(self, text: str) -> None:
        self.report.refused += 1
        if len(self.report.refusals) < _MOST_REASONS:
            self.report.refusals.append(text)


def _hashes_of_newest_pods(pods: Iterable[Json]) -> dict[str, tuple[str, str, str]]:
    """Returns creation, hash and generation of the newest pod of each owner, by the owner's uid."""
    found: dict[str, tuple[str, str, str]] = {}
    for pod in pods:
        metadata = _metadata(pod)
        labels = metadata.get("labels") or {}
        made = metadata.get("creationTimestamp") or ""
        seen = made, labels.get(REVISION_LABEL, ""), labels.get(_GENERATION_OF_POD, "")
        for owner in metadata.get("ownerReferences") or ():
            found[owner["uid"]] = max(seen, found.get(owner["uid"], seen))
    return found


def _hash_of_present_template(owner: Json, hashes: Mapping[str, tuple[str, str, str]]) -> str:
    """Returns the hash that the former cluster gave the template of an owner.

    It is empty if no pod shows it: that cluster had not yet acted on the present template.
    """
    metadata, status = owner["metadata"], owner.get("status") or {}
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return ""
    if owner["kind"] == "StatefulSet":
        return str(status.get("updateRevision") or "").rpartition("-")[2]
    _, named, generation = hashes.get(metadata["uid"], ("", "", ""))
    present = (metadata.get("annotations") or {}).get(_GENERATION_OF_DAEMON_SET, generation)
    return named if generation == present else ""


def _without_values(item: Json, *, is_custom: bool) -> Json:
    """Returns an object without what people keep secret."""
    copy = _without_environment(item) if is_custom else _with_bare_pods(item)
    if item.get("kind") == "ConfigMap":
        copy = {key: value for key, value in copy.items() if key not in ("data", "binaryData")}
    metadata = _metadata(copy)
    notes = metadata.get("annotations")
    if isinstance(notes, dict) and _LAST_APPLIED in notes:
        # It has the whole object once more.
        notes = {key: value for key, value in notes.items() if key != _LAST_APPLIED}
        copy = {**copy, "metadata": {**metadata, "annotations": notes}}
    return copy


def _with_bare_pods(item: Json) -> Json:
    for path in _POD_SPECS:
        item = _change_at(item, path)
    return item


def _change_at(item: Any, path: tuple[str, ...]) -> Any:
    """Returns an object in which containers under a path have no environment."""
    if not isinstance(item, dict):
        return item
    if path:
        inner = item.get(path[0])
        changed = _change_at(inner, path[1:])
        return item if changed is inner else {**item, path[0]: changed}
    for name in _CONTAINERS:
        containers = item.get(name)
        if isinstance(containers, list):
            item = {**item, name: [_without_keys(each) for each in containers]}
    return item


def _without_keys(container: Any) -> Any:
    if not isinstance(container, dict):
        return container
    return {key: value for key, value in container.items() if key not in _ENVIRONMENT}


def _without_environment(value: Any) -> Any:
    """Returns a custom resource without lists that are an environment, wherever they are."""
    if isinstance(value, list):
        return [_without_environment(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_environment(each)
        for key, each in value.items()
        if not (key in _ENVIRONMENT and isinstance(each, list))
    }


def _with_silence(node: Json) -> Json:
    """Returns a node whose kubelet stays silent if that of the original is."""
    status = node.get("status")
    ready = condition_of(status, "Ready") if isinstance(status, dict) else {}
    if not ready or ready.get("status") == "True":
        return node
    metadata = _metadata(node)
    notes = {**(metadata.get("annotations") or {}), KUBELET: "stopped"}
    return {**node, "metadata": {**metadata, "annotations": notes}}


def _with_phase(pod: Json) -> Json:
    """Returns a pod with a phase, which API servers add to what people write."""
    status = pod.get("status")
    known = status if isinstance(status, dict) else {}
    return pod if known.get("phase") else {**pod, "status": {**known, "phase": "Pending"}}


def _metadata(item: Mapping[str, Any]) -> Json:
    found = item.get("metadata")
    return found if isinstance(found, dict) else {}


def _title(item: Json) -> str:
    metadata = _metadata(item)
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata.get('name')}" if namespace else str(metadata.get("name"))
