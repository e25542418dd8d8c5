"""PersistentVolumes: whether they are free, bound or left behind, and what becomes of the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.wire import Json

from .cache import CLAIMS, VOLUMES, Seen
from .cluster import Cluster
from .controller import Concerns, Controller
from .items import StorageItem

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class Volumes(Controller):
    name = "volume"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        #: The volumes that refer to a claim, by its key.
        self._of_claim: dict[str, dict[str, None]] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {VOLUMES: self._volume_seen, CLAIMS: self._claim_seen}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(VOLUMES, key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        reference = item["spec"].get("claimRef")
        if not reference or not reference.get("uid"):
            self._enter(item, "Available")
            return None
        claim = self.cluster.read(CLAIMS, f"{reference['namespace']}/{reference['name']}")
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            self._reclaim(item)
            return None
        chosen = claim["spec"].get("volumeName", "")
        if chosen == key:
            self._enter(item, "Bound")
        elif chosen:
            self._give_up(item)
        return None

    def _volume_seen(self, seen: Seen) -> Iterator[str]:
        for each in (seen.before, seen.after):
            if isinstance(each, StorageItem) and each.claim:
                of_claim = self._of_claim.setdefault(each.claim, {})
                if each is seen.after:
                    of_claim[each.name] = None
                else:
                    of_claim.pop(each.name, None)
                if not of_claim:
                    del self._of_claim[each.claim]
        yield seen.item.key

    def _claim_seen(self, seen: Seen) -> Iterator[str]:
        yield from list(self._of_claim.get(seen.item.key, ()))

    def _enter(self, item: Json, phase: str) -> None:
        self.cluster.set_status(VOLUMES, item, {**(item.get("status") or {}), "phase": phase})

    def _reclaim(self, item: Json) -> None:
        """Its claim is gone: nobody gets it before somebody has looked at what is on it."""
        if item["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            self.cluster.delete(self.cluster.cache.items(VOLUMES)[item["metadata"]["name"]])
        else:
            self._enter(item, "Released")

    def _give_up(self, item: Json) -> None:
        """Its claim has taken another volume: one made for it goes, others are free again."""
        made = PROVISIONED_BY in (item["metadata"].get("annotations") or {})
        if made and item["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            self.cluster.delete(self.cluster.cache.items(VOLUMES)[item["metadata"]["name"]])
            return
        item["spec"].pop("claimRef")
        self.cluster.update(VOLUMES, item)
