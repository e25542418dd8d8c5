"""What an API server would keep of a workload: its objects, decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.documents.errors import DecodeError
from moorage.objects.custom import CustomKind
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import READ_KINDS, Object
from moorage.objects.meta import ObjectMeta
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import ResourceClaim
from moorage.world.claim_templates import ClaimTemplates, read_claim_template

from .cases import NotSupported, WorkloadError
from .custom_kinds import CLAIM_TEMPLATE, DEFINITION, custom_kind
from .templates import Manifest

#: An object of a kind as an API server would keep it: defaults are filled in. Raises LookupError
#: with the name of a priority class that is not defined.
Fill = Callable[[str, Manifest], Manifest]

_Key = tuple[str, str, str]


class Store:
    """Objects by kind, namespace and name. Pods change; they are kept as they are now."""

    def __init__(self, fill: Fill) -> None:
        self._fill = fill
        #: By uid.
        self.pods: dict[str, Pod] = {}
        self._objects: dict[_Key, Object] = {}
        #: What can be read: Kubernetes' own kinds, and those that were defined since.
        self._kinds: dict[str, str | CustomKind] = {kind: kind for kind in READ_KINDS}
        self._kinds[DEFINITION.kind] = DEFINITION
        #: A pod of each spec, so that the next one like it is not read anew.
        self._alike: dict[int, tuple[Any, Pod]] = {}
        self._claim_templates = ClaimTemplates()

    def add(self, raw: Manifest) -> Object:
        """Keeps a new object."""
        key = _key(raw)
        if key in self._objects:
            raise WorkloadError(_title(key), "already exists")
        item = self._decode(raw)
        if raw["kind"] == DEFINITION.kind:
            kind = custom_kind(raw)
            self._kinds[kind.kind] = kind
        self._keep(key, item)
        return item

    def make_claims(self, pod: Pod) -> tuple[Pod, tuple[ResourceClaim, ...]]:
        """Makes the claims of a pod that was added, from templates; returns it as it is then."""
        pod, claims = self._claim_templates.make_claims(pod)
        self.pods[pod.uid] = pod
        return pod, claims

    def add_claim_template(self, raw: Manifest) -> None:
        """Keeps a template of claims."""
        try:
            self._claim_templates.add(read_claim_template(self._fill(CLAIM_TEMPLATE, raw)))
        except DecodeError as error:
            raise WorkloadError(_title(_key(raw)), error) from None

    def replace(self, raw: Manifest) -> Object:
        """Keeps an object in the place of one that is there."""
        key = _key(raw)
        known = self.find(raw)
        if known is None:
            raise WorkloadError(_title(key), "not found")
        if not isinstance(known, Pod):
            item = self._decode(raw)
        else:
            pod = self._decode({**raw, "metadata": {**raw["metadata"], "uid": known.uid}})
            assert isinstance(pod, Pod)
            # An update cannot take a node away.
            item = msgspec.structs.replace(pod, node_name=known.node_name)
        self._keep(key, item)
        return item

    def find(self, raw: Manifest) -> Object | None:
        """Returns what is there of the same kind, namespace and name."""
        item = self._objects.get(_key(raw))
        return self.pods[item.uid] if isinstance(item, Pod) else item

    def remove(self, raw: Manifest) -> None:
        """Forgets an object that is not a pod."""
        del self._objects[_key(raw)]

    def remove_pod(self, pod: Pod) -> None:
        """Forgets a pod."""
        self.pods.pop(pod.uid, None)
        self._objects.pop(("Pod", pod.namespace, pod.name), None)

    def _keep(self, key: _Key, item: Object) -> None:
        self._objects[key] = item
        if isinstance(item, Pod):
            self.pods[item.uid] = item

    def _decode(self, raw: Manifest) -> Object:
        kind, spec = raw["kind"], raw.get("spec")
        alike = self._alike.get(id(spec)) if kind == "Pod" else None
        if alike is not None and alike[0] is spec:
            # Pods of one template: only what tells them apart is read.
            meta = msgspec.convert(raw["metadata"], ObjectMeta)
            return msgspec.structs.replace(
                alike[1],
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                labels=meta.labels or {},
            )
        if kind not in self._kinds:
            raise NotSupported(f"objects of kind {kind}")
        try:
            item = from_builtins(self._kinds[kind], self._fill(kind, raw))
        except DecodeError as error:
            raise WorkloadError(_title(_key(raw)), error) from None
        except LookupError as missing:
            text = f"spec.priorityClassName: {missing} is not defined"
            raise WorkloadError(_title(_key(raw)), text) from None
        if isinstance(item, Pod):
            self._alike[id(spec)] = spec, item
        return item


def _key(raw: Manifest) -> _Key:
    metadata = raw["metadata"]
    return raw["kind"], metadata.get("namespace", ""), metadata["name"]


def _title(key: _Key) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}{'/' * bool(namespace)}{name}"
