"""PersistentVolumeClaims: bound to a volume that is there, or to one that is made for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.wire import Json

from .cache import CLAIMS, VOLUMES, Seen
from .cluster import Cluster
from .controller import Concerns, Controller
from .items import StorageItem
from .provisioning import SELECTED_NODE, volume_for
from .storage_matching import Offer, first_suitable, offer, withdraw

CLASSES = "storageclasses.storage.k8s.io"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"

# Keys of classes begin with what no namespace begins with.
_CLASS = "@"


class Claims(Controller):
    name = "claim"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        #: The volumes that refer to a claim, by its key.
        self._promised: dict[str, dict[str, None]] = {}
        #: By class: the volumes that nobody has, the smallest first, and the claims without one.
        self._free: dict[str, list[Offer]] = {}
        self._pending: dict[str, dict[str, None]] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {
            CLAIMS: self._claim_seen,
            VOLUMES: self._volume_seen,
            CLASSES: lambda seen: (f"{_CLASS}{seen.item.name}",),
        }

    def reconcile(self, key: str) -> float | None:
        if not key.startswith(_CLASS):
            self._settle(key)
            return None
        # Volumes came, or the class itself: whoever waits longest gets the first.
        pending = self._pending.get(key.removeprefix(_CLASS), {})
        for each in list(pending):
            self._settle(each)
            self.cluster.cache.catch_up()
        return None

    def _claim_seen(self, seen: Seen) -> Iterator[str]:
        for each in (seen.before, seen.after):
            if isinstance(each, StorageItem):
                pending = self._pending.setdefault(each.storage_class, {})
                if each is seen.after and not each.volume and not each.terminating:
                    pending.setdefault(each.key)
                elif each is seen.after or seen.after is None:
                    pending.pop(each.key, None)
        yield seen.item.key

    def _volume_seen(self, seen: Seen) -> Iterator[str]:
        if isinstance(seen.before, StorageItem):
            self._promised.get(seen.before.claim, {}).pop(seen.before.name, None)
            withdraw(self._free, seen.before)
            if seen.before.claim:
                yield seen.before.claim
        if not isinstance(seen.after, StorageItem):
            return
        if seen.after.claim:
            self._promised.setdefault(seen.after.claim, {})[seen.after.name] = None
            yield seen.after.claim
        elif seen.after.phase == "Available" and not seen.after.terminating:
            offer(self._free, seen.after)
            if self._pending.get(seen.after.storage_class):
                yield f"{_CLASS}{seen.after.storage_class}"

    def _settle(self, key: str) -> None:
        claim = self.cluster.read(CLAIMS, key)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return
        named = claim["spec"].get("volumeName", "")
        if named:
            self._complete(claim, named)
            return
        volume = self._promised_to(key, claim) or self._found(claim)
        if volume is not None:
            self._bind(claim, volume)

    def _promised_to(self, key: str, claim: Json) -> Json | None:
        """A volume that somebody, most likely the scheduler, has reserved for the claim."""
        for name in sorted(self._promised.get(key, ())):
            volume = self.cluster.read(VOLUMES, name)
            if volume is not None and _is_for(volume, claim):
                return volume
        return None

    def _found(self, claim: Json) -> Json | None:
        """A volume for a claim that may have one already."""
        name = claim["spec"].get("storageClassName", "")
        of_class = self.cluster.read(CLASSES, name) if name else None
        waits = of_class is not None and of_class["volumeBindingMode"] == "WaitForFirstConsumer"
        notes = claim["metadata"].get("annotations") or {}
        if waits and SELECTED_NODE not in notes:
            return None
        if not waits:
            free = (self.cluster.read(VOLUMES, each) for _, each in self._free.get(name, ()))
            suitable = first_suitable(claim, free)
            if suitable is not None:
                return suitable
        if of_class is None or of_class["provisioner"] == _NO_PROVISIONER:
            return None
        return self._provision(claim, of_class, notes.get(SELECTED_NODE, "") if waits else "")

    def _provision(self, claim: Json, of_class: Json, node: str) -> Json | None:
        found = self.cluster.cache.node(node) if node else None
        if node and found is None:
            # The scheduler chooses again when the choice is taken back.
            del claim["metadata"]["annotations"][SELECTED_NODE]
            self.cluster.update(CLAIMS, claim)
            return None
        return self.cluster.create(VOLUMES, "", volume_for(claim, of_class, found)).object

    def _complete(self, claim: Json, named: str) -> None:
        """The claim names its volume; the rest follows from that."""
        volume = self.cluster.read(VOLUMES, named)
        notes = claim["metadata"].get("annotations") or {}
        if volume is None:
            lost = {**(claim.get("status") or {}), "phase": "Lost"}
            if _BIND_COMPLETED in notes:
                self.cluster.set_status(CLAIMS, claim, lost)
        elif not volume["spec"].get("claimRef") or _is_for(volume, claim):
            self._bind(claim, volume)

    def _bind(self, claim: Json, volume: Json) -> None:
        """Writes both halves; what is written already stays as it is."""
        self._reserve(claim, volume)
        metadata, spec = claim["metadata"], claim["spec"]
        name = volume["metadata"]["name"]
        notes = metadata.setdefault("annotations", {})
        if spec.get("volumeName") != name:
            spec["volumeName"] = name
            notes[_BOUND_BY_CONTROLLER] = "yes"
        notes[_BIND_COMPLETED] = "yes"
        written = self.cluster.update(CLAIMS, claim).object
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": volume["spec"]["capacity"],
        }
        self.cluster.set_status(CLAIMS, written, {**(written.get("status") or {}), **status})

    def _reserve(self, claim: Json, volume: Json) -> None:
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid"):
            return
        metadata = claim["metadata"]
        if not reference:
            volume["metadata"].setdefault("annotations", {})[_BOUND_BY_CONTROLLER] = "yes"
        volume["spec"]["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        self.cluster.update(VOLUMES, volume)


def _is_for(volume: Json, claim: Json) -> bool:
    reference, metadata = volume["spec"].get("claimRef") or {}, claim["metadata"]
    return (
        reference.get("namespace") == metadata["namespace"]
        and reference.get("name") == metadata["name"]
        and reference.get("uid", "") in ("", metadata["uid"])
    )
