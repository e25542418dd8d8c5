"""Versions of a template: their hashes, and ControllerRevisions that keep them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.embedded.store.object_store import Json

from .controller import ControllerApi
from .items import Item
from .ownership import is_managed_by, reference

HASH_LABEL = "pod-template-hash"

# No vowels and nothing that looks like another letter, so that no words come out.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 10

_canonical = msgspec.json.Encoder(order="deterministic").encode


def hash_of(template: Json, collisions: int = 0) -> str:
    """Returns a short hash of a template; another number of collisions gives another hash."""
    digest = hashlib.sha256(_canonical([template, collisions])).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_LENGTH])


def without_hash(template: Json) -> Json:
    """Returns a template without the label of its hash."""
    metadata = dict(template.get("metadata") or {})
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def with_label(template: Json, key: str, value: str) -> Json:
    """Returns a template with one more label."""
    metadata = dict(template.get("metadata") or {})
    labels = {**(metadata.get("labels") or {}), key: value}
    return {**template, "metadata": {**metadata, "labels": labels}}


REVISIONS = "controllerrevisions.apps"
REVISION_LABEL = "controller-revision-hash"
#: Where the versions of stateful sets have their hashes.
REVISION_HASH_LABEL = "controller.kubernetes.io/hash"


@dataclass(frozen=True, slots=True)
class Revisions:
    """The versions of one owner's template, oldest first; the last is the present one."""

    cluster: ControllerApi
    known: list[Json]

    @classmethod
    def of(cls, cluster: ControllerApi, owner: Json, label: str = REVISION_LABEL) -> Revisions:
        """Reads the versions of an owner; adds one for a new template.

        `label` is the label of versions that has their hashes.
        """
        known = [each.entry.object for each in _owned_items(cluster, owner)]
        known.sort(key=lambda each: each["revision"])
        data = make_revision_data(owner)
        same = [each for each in known if each["data"] == data]
        latest = max((each["revision"] for each in known), default=0)
        if not same:
            known.append(_create(cluster, owner, label, latest + 1))
        elif same[-1]["revision"] != latest:
            again = {**same[-1], "revision": latest + 1}
            known.remove(same[-1])
            known.append(cluster.update(REVISIONS, again).object)
        return cls(cluster, known)

    @property
    def present(self) -> Json:
        return self.known[-1]

    @property
    def present_hash(self) -> str:
        return revision_hash(self.present)

    def template(self, name: str) -> Json:
        """Returns the template of a version; the present one if that version is gone."""
        found = next((each for each in self.known if each["metadata"]["name"] == name), None)
        return (found or self.present)["data"]["spec"]["template"]

    def forget(self, in_use: set[str], limit: int) -> None:
        """Removes the oldest unused versions beyond a limit."""
        idle = [each for each in self.known[:-1] if revision_hash(each) not in in_use]
        items = self.cluster.cache.items(REVISIONS)
        for each in idle[: max(len(idle) - limit, 0)]:
            metadata = each["metadata"]
            item = items.get(f"{metadata['namespace']}/{metadata['name']}")
            if item is not None:
                self.cluster.delete(item)


def revision_hash(revision: Json) -> str:
    """Returns the hash at the end of a revision's name."""
    return str(revision["metadata"]["name"]).rpartition("-")[2]


def pod_template(template: Json) -> Json:
    """Returns a template without its patch directive."""
    return {key: value for key, value in template.items() if key != "$patch"}


def _owned_items(cluster: ControllerApi, owner: Json) -> list[Item]:
    uid = owner["metadata"]["uid"]
    owned = cluster.cache.owned(uid, REVISIONS)
    return [each for each in owned if is_managed_by(each, uid) and not each.terminating]


def make_revision_data(owner: Json) -> Json:
    """Returns what a revision keeps of its owner."""
    template = {**owner["spec"]["template"], "$patch": "replace"}
    return {"spec": {"template": _in_order(template)}}


def _in_order(value: Any) -> Any:
    """Returns a value with sorted keys: kubectl compares versions byte by byte."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def _create(cluster: ControllerApi, owner: Json, label: str, number: int) -> Json:
    named = hash_of(make_revision_data(owner)["spec"]["template"])
    made = make_revision(owner, label, named, number)
    return cluster.create(REVISIONS, owner["metadata"]["namespace"], made).object


def make_revision(owner: Json, label: str, named: str, number: int = 1) -> Json:
    """Returns the version of an owner's present template, named by a hash.

    `label` is the label that has the hash.
    """
    metadata = owner["metadata"]
    labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
    made: Json = {
        "metadata": {
            "name": f"{metadata['name']}-{named}",
            "labels": {**labels, label: named},
            "ownerReferences": [reference(owner)],
        },
        "data": make_revision_data(owner),
        "revision": number,
    }
    if metadata.get("annotations"):
        # Among them may be why the template was changed.
        made["metadata"]["annotations"] = metadata["annotations"]
    return made
