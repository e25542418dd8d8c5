"""Controllers of volumes and claims: binding, provisioning and reclaiming."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping

from moorage.embedded.api.names import read_selector
from moorage.embedded.store.object_store import Json
from moorage.objects.quantity import Quantity

from .cache import CLAIMS, VOLUMES, ItemChange
from .controller import Concerns, Controller, ControllerApi
from .items import NodeItem, StorageItem

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class VolumeController(Controller):
    name = "volume"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        #: The volumes that refer to a claim, by its key.
        self._of_claim: dict[str, dict[str, None]] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {VOLUMES: self._keys_of_volume, CLAIMS: self._keys_of_claim}

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

    def _keys_of_volume(self, seen: ItemChange) -> Iterator[str]:
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

    def _keys_of_claim(self, seen: ItemChange) -> Iterator[str]:
        yield from list(self._of_claim.get(seen.item.key, ()))

    def _enter(self, item: Json, phase: str) -> None:
        self.cluster.set_status(VOLUMES, item, {**(item.get("status") or {}), "phase": phase})

    def _reclaim(self, item: Json) -> None:
        """Deletes or releases a volume whose claim is gone."""
        if item["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            self.cluster.delete(self.cluster.cache.items(VOLUMES)[item["metadata"]["name"]])
        else:
            self._enter(item, "Released")

    def _give_up(self, item: Json) -> None:
        """Deletes or frees a volume whose claim has taken another one."""
        made = PROVISIONED_BY in (item["metadata"].get("annotations") or {})
        if made and item["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            self.cluster.delete(self.cluster.cache.items(VOLUMES)[item["metadata"]["name"]])
            return
        item["spec"].pop("claimRef")
        self.cluster.update(VOLUMES, item)


SELECTED_NODE = "volume.kubernetes.io/selected-node"
_HOSTNAME = "kubernetes.io/hostname"
_FOLDER = "/var/lib/embedded-volumes"


def claim_reference(claim: Json) -> Json:
    """Makes the reference by which a volume names its claim."""
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def volume_for(claim: Json, of_class: Json, node: NodeItem | None) -> Json:
    """Makes a volume for a claim, on a node if one was selected."""
    metadata, wanted = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    spec = {
        "capacity": {"storage": wanted["resources"]["requests"]["storage"]},
        "accessModes": wanted["accessModes"],
        "volumeMode": wanted["volumeMode"],
        "storageClassName": of_class["metadata"]["name"],
        "persistentVolumeReclaimPolicy": of_class["reclaimPolicy"],
        "hostPath": {"path": f"{_FOLDER}/{name}"},
        "claimRef": claim_reference(claim),
    }
    if node is not None:
        host = node.labels.get(_HOSTNAME, node.name)
        expression = {"key": _HOSTNAME, "operator": "In", "values": [host]}
        terms = [{"matchExpressions": [expression]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    notes = {PROVISIONED_BY: of_class["provisioner"]}
    return {"metadata": {"name": name, "annotations": notes}, "spec": spec}


#: The size of a volume, and its name.
Offer = tuple[int, str]


def offer(free: dict[str, list[Offer]], volume: StorageItem) -> None:
    """Adds a volume to the free ones of its class."""
    insort(free.setdefault(volume.storage_class, []), _offer(volume))


def withdraw(free: dict[str, list[Offer]], volume: StorageItem) -> None:
    """Removes a volume from the free ones of its class."""
    listed, entry = free.get(volume.storage_class, []), _offer(volume)
    at = bisect_left(listed, entry)
    if listed[at : at + 1] == [entry]:
        del listed[at]


def first_suitable(claim: Json, volumes: Iterable[Json | None]) -> Json | None:
    """Returns the first volume that suits a claim."""
    return next((each for each in volumes if each is not None and _suits(claim, each)), None)


def _offer(volume: StorageItem) -> Offer:
    return (volume.size, volume.name)


def _suits(claim: Json, volume: Json) -> bool:
    wanted, offered = claim["spec"], volume["spec"]
    asked = (wanted.get("resources") or {}).get("requests") or {}
    selector = read_selector(wanted.get("selector"))
    labels = volume["metadata"].get("labels") or {}
    return (
        offered.get("storageClassName", "") == wanted.get("storageClassName", "")
        and offered["volumeMode"] == wanted["volumeMode"]
        and set(wanted["accessModes"]) <= set(offered["accessModes"])
        and Quantity.parse(offered["capacity"].get("storage", 0))
        >= Quantity.parse(asked.get("storage", 0))
        and (selector is None or selector.matches(labels))
    )


CLASSES = "storageclasses.storage.k8s.io"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"

# Keys of classes begin with what no namespace begins with.
_CLASS = "@"


class ClaimController(Controller):
    name = "claim"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        #: The volumes that refer to a claim, by its key.
        self._promised: dict[str, dict[str, None]] = {}
        #: By class: the free volumes, the smallest first, and the claims without a volume.
        self._free: dict[str, list[Offer]] = {}
        self._pending: dict[str, dict[str, None]] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {
            CLAIMS: self._keys_of_claim,
            VOLUMES: self._keys_of_volume,
            CLASSES: lambda seen: (f"{_CLASS}{seen.item.name}",),
        }

    def reconcile(self, key: str) -> float | None:
        if not key.startswith(_CLASS):
            self._bind_claim(key)
            return None
        # Volumes came, or the class itself: the claim that waits longest is first.
        pending = self._pending.get(key.removeprefix(_CLASS), {})
        for each in list(pending):
            self._bind_claim(each)
            self.cluster.cache.catch_up()
        return None

    def _keys_of_claim(self, seen: ItemChange) -> Iterator[str]:
        for each in (seen.before, seen.after):
            if isinstance(each, StorageItem):
                pending = self._pending.setdefault(each.storage_class, {})
                if each is seen.after and not each.volume and not each.terminating:
                    pending.setdefault(each.key)
                elif each is seen.after or seen.after is None:
                    pending.pop(each.key, None)
        yield seen.item.key

    def _keys_of_volume(self, seen: ItemChange) -> Iterator[str]:
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

    def _bind_claim(self, key: str) -> None:
        claim = self.cluster.read(CLAIMS, key)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return
        named = claim["spec"].get("volumeName", "")
        if named:
            self._complete(claim, named)
            return
        volume = self._find_reserved(key, claim) or self._find_volume(claim)
        if volume is not None:
            self._bind(claim, volume)

    def _find_reserved(self, key: str, claim: Json) -> Json | None:
        """Returns a volume that names the claim already; usually the scheduler has chosen it."""
        for name in sorted(self._promised.get(key, ())):
            volume = self.cluster.read(VOLUMES, name)
            if volume is not None and _is_for(volume, claim):
                return volume
        return None

    def _find_volume(self, claim: Json) -> Json | None:
        """Finds or makes a volume for a claim; returns None while the claim must wait."""
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
        """Completes the binding of a claim that names its volume."""
        volume = self.cluster.read(VOLUMES, named)
        notes = claim["metadata"].get("annotations") or {}
        if volume is None:
            lost = {**(claim.get("status") or {}), "phase": "Lost"}
            if _BIND_COMPLETED in notes:
                self.cluster.set_status(CLAIMS, claim, lost)
        elif not volume["spec"].get("claimRef") or _is_for(volume, claim):
            self._bind(claim, volume)

    def _bind(self, claim: Json, volume: Json) -> None:
        """Binds a claim and a volume to each other."""
        self._reserve(claim, volume)
        metadata, spec = claim["metadata"], claim["spec"]
        name = volume["metadata"]["name"]
        notes = metadata.setdefault("annotations", {})
        if spec.get("volumeName") != name:
            spec["volumeName"] = name
            notes[_BOUND_BY_CONTROLLER] = "yes"
        notes[_BIND_COMPLETED] = "yes"
        stored = self.cluster.update(CLAIMS, claim).object
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": volume["spec"]["capacity"],
        }
        self.cluster.set_status(CLAIMS, stored, {**(stored.get("status") or {}), **status})

    def _reserve(self, claim: Json, volume: Json) -> None:
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid"):
            return
        if not reference:
            volume["metadata"].setdefault("annotations", {})[_BOUND_BY_CONTROLLER] = "yes"
        volume["spec"]["claimRef"] = claim_reference(claim)
        self.cluster.update(VOLUMES, volume)


def _is_for(volume: Json, claim: Json) -> bool:
    reference, metadata = volume["spec"].get("claimRef") or {}, claim["metadata"]
    return (
        reference.get("namespace") == metadata["namespace"]
        and reference.get("name") == metadata["name"]
        and reference.get("uid", "") in ("", metadata["uid"])
    )
