"""The claims of pods with lasting names: made with them, and kept or not when they go."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

from mooring.embedded.wire import Json

from .cache import CLAIMS
from .cluster import Cluster
from .items import Owner, PodItem
from .ownership import reference, written
from .recording import Recorder

_POD = {"apiVersion": "v1", "kind": "Pod"}


@dataclass(frozen=True, slots=True)
class ClaimKeeper:
    """Makes the claims of stateful sets, and says whose they are."""

    cluster: Cluster
    recorder: Recorder

    def are_stale(self, item: Json, pod: str) -> bool:
        """Whether claims of this name are still to go with a pod that had it before."""
        known = self.cluster.cache.items(CLAIMS)
        found = (known.get(key) for key, _ in _claims(item, pod))
        return any(
            each.terminating or any(owner.kind == "Pod" for owner in each.owners)
            for each in found
            if each is not None
        )

    def furnish(self, item: Json, pod: Json) -> None:
        """Gives a pod its claims; those that are missing are made."""
        metadata, name = item["metadata"], pod["metadata"]["name"]
        volumes = {}
        for key, template in _claims(item, name):
            volume, claim = template["metadata"]["name"], key.rpartition("/")[2]
            volumes[volume] = {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            if self.cluster.read(CLAIMS, key) is None:
                made = _claim(item, template, claim)
                self.cluster.create(CLAIMS, metadata["namespace"], made)
                message = f"Create Claim {claim} Pod {name} in StatefulSet {metadata['name']}"
                self.recorder.tell(item, "SuccessfulCreate", f"{message} success")
        if volumes:
            others = pod["spec"].get("volumes") or []
            kept = [each for each in others if each["name"] not in volumes]
            pod["spec"]["volumes"] = [*kept, *volumes.values()]

    def settle(self, item: Json, pod: PodItem, *, condemned: bool) -> None:
        """Has the claims of a pod go with it, with the set, or with neither."""
        known, uid = self.cluster.cache.items(CLAIMS), item["metadata"]["uid"]
        for key, _ in _claims(item, pod.name):
            claim = known.get(key)
            if claim is None or claim.terminating:
                continue
            ours = [each for each in claim.owners if each.uid in (uid, pod.uid)]
            others = [each for each in claim.owners if each not in ours]
            wanted = _owner(item, pod, condemned=condemned) if _is_free(others) else None
            if [each.uid for each in ours] != ([wanted["uid"]] if wanted else []):
                owners = [written(each) for each in others]
                self.cluster.rewrite_owners(claim, [*owners, wanted] if wanted else owners)


def _claims(item: Json, pod: str) -> Iterator[tuple[str, Json]]:
    """The keys of a pod's claims, and what they are made from."""
    for each in item["spec"].get("volumeClaimTemplates") or ():
        yield f"{item['metadata']['namespace']}/{each['metadata']['name']}-{pod}", each


def _claim(item: Json, template: Json, name: str) -> Json:
    chosen = item["spec"]["selector"].get("matchLabels") or {}
    labels = {**(template["metadata"].get("labels") or {}), **chosen}
    made: Json = {
        "metadata": {**template["metadata"], "name": name, "labels": labels},
        "spec": deepcopy(template["spec"]),
    }
    if _policy(item, "whenDeleted") == "Delete":
        made["metadata"]["ownerReferences"] = [reference(item)]
    return made


def _owner(item: Json, pod: PodItem, *, condemned: bool) -> Json | None:
    """Who takes a claim along when it goes."""
    if condemned and _policy(item, "whenScaled") == "Delete":
        return reference({**_POD, "metadata": {"name": pod.name, "uid": pod.uid}})
    return reference(item) if _policy(item, "whenDeleted") == "Delete" else None


def _policy(item: Json, when: str) -> str:
    policy = item["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return str(policy.get(when, "Retain"))


def _is_free(others: list[Owner]) -> bool:
    """Whether nobody else manages a claim already."""
    return not any(each.controller for each in others)
