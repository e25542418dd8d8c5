"""The controller of claims of devices: makes those of templates, and frees what nobody uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json

from .cache import PODS, ItemChange
from .controller import Concerns, Controller, ControllerApi
from .event_recorder import EventRecorder
from .items import DeviceClaimItem, Item, PodItem

DEVICE_CLAIMS = "resourceclaims.resource.k8s.io"
CLAIM_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"

#: On a generated claim: the name by which its pod refers to it.
_REFERENCE = "resource.kubernetes.io/pod-claim-name"
#: On a claim whose devices must be freed before it goes; the scheduler sets it.
_FINALIZER = "resource.kubernetes.io/delete-protection"

# A generated name has five letters of its own, and is a label at most: 63 characters.
_LONGEST_PREFIX = 57

# Keys of claims begin with what no namespace begins with.
_CLAIM = "@"


class ResourceClaimController(Controller):
    """Pods get the claims that they refer to; claims lose the pods that are done with them."""

    name = "resource claim"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        self._recorder = EventRecorder(cluster, "resource_claim")
        #: The claims that are reserved for a pod, by its uid.
        self._used_by: dict[str, dict[str, None]] = {}
        #: The pods that wait for a template, by its key.
        self._waiting: dict[str, dict[str, None]] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {
            PODS: self._keys_of_pod,
            DEVICE_CLAIMS: self._keys_of_claim,
            CLAIM_TEMPLATES: lambda seen: tuple(self._waiting.pop(seen.item.key, ())),
        }

    def reconcile(self, key: str) -> float | None:
        if key.startswith(_CLAIM):
            self._settle_claim(key.removeprefix(_CLAIM))
        else:
            self._settle_pod(key)
        return None

    def _keys_of_pod(self, seen: ItemChange) -> Iterator[str]:
        pod = seen.item
        if isinstance(pod, PodItem) and (seen.after is None or is_done(pod)):
            for claim in self._used_by.get(pod.uid, ()):
                yield f"{_CLAIM}{claim}"
            for owned in self.cluster.cache.owned(pod.uid, DEVICE_CLAIMS):
                yield f"{_CLAIM}{owned.key}"
        elif isinstance(pod, PodItem) and pod.has_claims:
            yield pod.key

    def _keys_of_claim(self, seen: ItemChange) -> Iterator[str]:
        before, after = seen.before, seen.after
        for uid in before.users if isinstance(before, DeviceClaimItem) else ():
            users = self._used_by.get(uid, {})
            users.pop(seen.item.key, None)
            if not users:
                self._used_by.pop(uid, None)
        for uid in after.users if isinstance(after, DeviceClaimItem) else ():
            self._used_by.setdefault(uid, {})[seen.item.key] = None
        if after is not None:
            yield f"{_CLAIM}{seen.item.key}"
        owner = seen.item.controller
        pod = self.cluster.cache.by_uid.get(owner.uid) if owner is not None else None
        if isinstance(pod, PodItem) and pod.has_claims:
            # A claim that came or went may be the one that the pod waits for.
            yield pod.key

    def _settle_pod(self, key: str) -> None:
        """Makes the claims that a pod wants from templates, and writes their names into it."""
        item, pod = self.cluster.read(PODS, key), self.cluster.cache.pod(key)
        if item is None or pod is None or not pod.active:
            return
        known = {
            each["name"]: each.get("resourceClaimName", "")
            for each in (item.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        names: dict[str, str] = {}
        for reference in item["spec"].get("resourceClaims") or ():
            template = reference.get("resourceClaimTemplateName")
            if template is not None:
                name = reference["name"]
                names[name] = self._claim_of(item, pod, name, template, known.get(name, ""))
        if any(known.get(name) != claim for name, claim in names.items()):
            self._write_names(item, {**known, **names})
        if pod.node:
            self._reserve_for_bound(item, names)

    def _claim_of(self, item: Json, pod: PodItem, reference: str, template: str, known: str) -> str:
        """Returns the name of the claim that was generated for a reference of a pod."""
        claim = self.cluster.read(DEVICE_CLAIMS, f"{pod.namespace}/{known}") if known else None
        if claim is not None:
            return known
        for owned in self.cluster.cache.owned(pod.uid, DEVICE_CLAIMS):
            if not owned.terminating and _reference_of(owned) == reference:
                # It was made before its name was written.
                return owned.name
        try:
            return self._generate(item, pod, reference, template)
        except RequestRefused as refusal:
            message = f"PodResourceClaim {reference}: {refusal.message}"
            self._recorder.record(item, "FailedResourceClaimCreation", message, "Warning")
            raise

    def _generate(self, item: Json, pod: PodItem, reference: str, template: str) -> str:
        key = f"{pod.namespace}/{template}"
        source = self.cluster.read(CLAIM_TEMPLATES, key)
        if source is None:
            self._waiting.setdefault(key, {})[pod.key] = None
            text = f'resource claim template "{template}": resourceclaimtemplate.resource.k8s.io'
            raise RequestRefused(404, "NotFound", f'{text} "{template}" not found')
        wanted = source["spec"].get("metadata") or {}
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.name,
            "uid": pod.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata: Json = {
            "generateName": generated_prefix(pod.name, reference),
            "annotations": {**(wanted.get("annotations") or {}), _REFERENCE: reference},
            "ownerReferences": [owner],
        }
        if wanted.get("labels"):
            metadata["labels"] = wanted["labels"]
        claim = {"metadata": metadata, "spec": source["spec"]["spec"]}
        return self.cluster.create(DEVICE_CLAIMS, pod.namespace, claim).name

    def _write_names(self, item: Json, names: Mapping[str, str]) -> None:
        references = [each["name"] for each in item["spec"]["resourceClaims"]]
        entries = [
            {"name": name, "resourceClaimName": names[name]} for name in references if name in names
        ]
        status = {**(item.get("status") or {}), "resourceClaimStatuses": entries}
        self.cluster.set_status(PODS, item, status)

    def _reserve_for_bound(self, item: Json, names: Mapping[str, str]) -> None:
        """Reserves allocated claims for a pod that was bound around the scheduler."""
        metadata = item["metadata"]
        for reference in item["spec"].get("resourceClaims") or ():
            name = reference.get("resourceClaimName") or names.get(reference["name"], "")
            claim = self.cluster.read(DEVICE_CLAIMS, f"{metadata['namespace']}/{name}")
            status = (claim or {}).get("status") or {}
            users = status.get("reservedFor") or []
            if not status.get("allocation") or any(u["uid"] == metadata["uid"] for u in users):
                continue
            user = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
            self.cluster.set_status(
                DEVICE_CLAIMS, claim or {}, {**status, "reservedFor": [*users, user]}
            )

    def _settle_claim(self, key: str) -> None:
        """Drops the users of a claim that are done, and frees its devices after the last one."""
        claim = self.cluster.read(DEVICE_CLAIMS, key)
        if claim is None:
            return
        metadata, status = claim["metadata"], claim.get("status") or {}
        users = status.get("reservedFor") or []
        left = [each for each in users if self._uses(each)]
        protected = _FINALIZER in (metadata.get("finalizers") or ())
        if len(left) < len(users):
            self._drop_users(claim, left, free=protected and not left)
        elif protected and not users and "deletionTimestamp" in metadata:
            self._drop_users(claim, left, free=True)
        item = self.cluster.cache.items(DEVICE_CLAIMS).get(key)
        if item is not None and not left and self._is_useless(item):
            self.cluster.delete(item)

    def _uses(self, user: Json) -> bool:
        """Whether a user of a claim may still need it."""
        if user.get("apiGroup") or user["resource"] != PODS:
            return True
        pod = self.cluster.cache.by_uid.get(user["uid"])
        return isinstance(pod, PodItem) and not is_done(pod)

    def _drop_users(self, claim: Json, left: list[Json], *, free: bool) -> None:
        """Writes who still uses a claim; frees its devices and lets it go if nobody does."""
        emptied = {"allocation", "devices", "reservedFor"} if free else {"reservedFor"}
        status = {
            key: part for key, part in (claim.get("status") or {}).items() if key not in emptied
        }
        if left:
            status["reservedFor"] = left
        self.cluster.set_status(DEVICE_CLAIMS, claim, status)
        if free:
            metadata = claim["metadata"]
            self.cluster.cache.catch_up()
            item = self.cluster.cache.items(DEVICE_CLAIMS).get(
                f"{metadata['namespace']}/{metadata['name']}"
            )
            if item is not None:
                self.cluster.without_finalizer(item, _FINALIZER)

    def _is_useless(self, claim: Item) -> bool:
        """Whether a claim was generated for a pod that does not need it any more.

        The claims of pods that are gone are left to the garbage collector.
        """
        owner = claim.controller
        if owner is None or owner.kind != "Pod" or claim.terminating:
            return False
        pod = self.cluster.cache.pod(f"{claim.namespace}/{owner.name}")
        return pod is not None and (pod.uid != owner.uid or is_done(pod))


def is_done(pod: PodItem) -> bool:
    """Whether a pod has ended, or will never begin."""
    return pod.phase in ("Succeeded", "Failed") or (pod.terminating and not pod.node)


def generated_prefix(pod: str, reference: str) -> str:
    """Returns how the name of a generated claim begins; long names are shortened in proportion."""
    whole = len(pod) + 1 + len(reference)
    if whole > _LONGEST_PREFIX:
        pod = pod[: len(pod) * _LONGEST_PREFIX // whole]
        reference = reference[: len(reference) * _LONGEST_PREFIX // whole]
    return f"{pod}-{reference}-"


def _reference_of(claim: Item) -> str:
    notes: Mapping[str, str] = claim.entry.object["metadata"].get("annotations") or {}
    return notes.get(_REFERENCE, "")
