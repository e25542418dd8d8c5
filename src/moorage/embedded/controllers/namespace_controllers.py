"""Controllers of namespaces: their deletion, their service account, certificate and quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from moorage.embedded.api.decoding import amount_text, part
from moorage.embedded.api.request_options import WriteOptions
from moorage.embedded.kinds.cluster_kinds import NAMESPACE_FINALIZER
from moorage.embedded.kinds.pod_spec_rules import Nanos
from moorage.embedded.kinds.quotas import (
    CLAIMS,
    PODS,
    QUOTAS,
    SERVICES,
    applies,
    counted_table,
    usage_of,
)
from moorage.embedded.kinds.stored_kinds import ROOT_CERTIFICATE, ROOT_CERTIFICATE_NAMESPACE
from moorage.embedded.kinds.subresources import finalize
from moorage.embedded.store.object_store import Json, StoredObject

from .cache import ItemChange
from .controller import EVERY_KIND, Concerns, Controller, ControllerApi, own_key
from .items import PodItem, item_of
from .replica_sets import ROUND

NAMESPACES = "namespaces"
_ACCOUNTS, _MAPS = "serviceaccounts", "configmaps"
_ACCOUNT = "default"
_NOTE = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the "
    "kube-apiserver when using internal endpoints such as the internal service IP or "
    "kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
}


class NamespaceController(Controller):
    name = "namespace"

    def concerns(self) -> Mapping[str, Concerns]:
        return {EVERY_KIND: self._keys_of_change}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(NAMESPACES, key)
        if item is None or "deletionTimestamp" not in item["metadata"]:
            return None
        left = False
        going = 0
        for table, entry in self._content(key):
            left = True
            if going >= ROUND:
                return 0.0
            going += self._delete(table, entry)
        finalizers = part(item, "spec").get("finalizers") or []
        if not left and NAMESPACE_FINALIZER in finalizers:
            kept = [each for each in finalizers if each != NAMESPACE_FINALIZER]
            finalize(self.cluster.api, key, {**item, "spec": {"finalizers": kept}}, WriteOptions())
        return 0.0 if going else None

    def _keys_of_change(self, seen: ItemChange) -> Iterator[str]:
        item = seen.item
        if item.table == NAMESPACES:
            yield item.key
        elif item.namespace and seen.after is None:
            namespace = self.cluster.cache.items(NAMESPACES).get(item.namespace)
            if namespace is not None and namespace.terminating:
                yield namespace.key

    def _content(self, namespace: str) -> Iterator[tuple[str, StoredObject]]:
        cache = self.cluster.cache
        # Events are not followed, and are content nevertheless.
        for table in (*cache.tables, "events"):
            if cache.kind(table).namespaced:
                for entry in self.cluster.api.store.table(table).in_order(namespace):
                    yield table, entry

    def _delete(self, table: str, entry: StoredObject) -> bool:
        """Deletes an object unless it is being deleted; returns whether it did."""
        item = item_of(table, entry)
        if item.terminating:
            return False
        self.cluster.delete(item)
        return True


class ServiceAccountController(Controller):
    """Keeps a service account named default in every namespace."""

    name = "serviceaccount"

    def concerns(self) -> Mapping[str, Concerns]:
        return {NAMESPACES: own_key, _ACCOUNTS: self._keys_of_account}

    def reconcile(self, key: str) -> float | None:
        if self.cluster.read(_ACCOUNTS, f"{key}/{_ACCOUNT}") is None and _stays(
            self.cluster.read(NAMESPACES, key)
        ):
            self.cluster.create(_ACCOUNTS, key, {"metadata": {"name": _ACCOUNT}})
        return None

    def _keys_of_account(self, seen: ItemChange) -> Iterator[str]:
        if seen.after is None and seen.item.name == _ACCOUNT:
            yield seen.item.namespace


class RootCertificateController(Controller):
    """Copies the certificate of the API server into every namespace."""

    name = "root-ca-certificate-publisher"

    def concerns(self) -> Mapping[str, Concerns]:
        return {NAMESPACES: own_key, _MAPS: self._keys_of_map}

    def reconcile(self, key: str) -> float | None:
        source = self.cluster.read(_MAPS, f"{ROOT_CERTIFICATE_NAMESPACE}/{ROOT_CERTIFICATE}")
        if source is None or not _stays(self.cluster.read(NAMESPACES, key)):
            return None
        data = source.get("data") or {}
        copy = self.cluster.read(_MAPS, f"{key}/{ROOT_CERTIFICATE}")
        if copy is None:
            made = {"metadata": {"name": ROOT_CERTIFICATE, "annotations": _NOTE}, "data": data}
            self.cluster.create(_MAPS, key, made)
        elif (copy.get("data") or {}) != data:
            self.cluster.update(_MAPS, {**copy, "data": data})
        return None

    def _keys_of_map(self, seen: ItemChange) -> Iterator[str]:
        if seen.item.name != ROOT_CERTIFICATE:
            return
        if seen.item.namespace == ROOT_CERTIFICATE_NAMESPACE:
            yield from list(self.cluster.cache.items(NAMESPACES))
        else:
            yield seen.item.namespace


def _stays(namespace: Json | None) -> bool:
    return namespace is not None and "deletionTimestamp" not in namespace["metadata"]


class QuotaController(Controller):
    """Writes what is used into the status of each quota."""

    name = "resourcequota"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        #: What objects use, by quota, table and key, with the versions that say so.
        self._usage: dict[str, dict[tuple[str, str], tuple[int, Nanos]]] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {EVERY_KIND: self._keys_of_change}

    def reconcile(self, key: str) -> float | None:
        quota = self.cluster.read(QUOTAS, key)
        if quota is None:
            self._usage.pop(key, None)
            return None
        hard = part(quota["spec"], "hard")
        used = self._count(key, quota, hard)
        status = {"hard": hard, "used": {name: amount_text(name, used[name]) for name in hard}}
        if part(quota, "status") != status:
            self.cluster.set_status(QUOTAS, quota, status)
        return None

    def _count(self, key: str, quota: Json, hard: Mapping[str, str]) -> Counter[str]:
        """Counts anew; only objects that changed since are read."""
        before, now = self._usage.get(key, {}), dict[tuple[str, str], tuple[int, Nanos]]()
        total: Counter[str] = Counter()
        served = {each.table for each in self.cluster.api.kinds}
        for table in sorted({counted_table(name) for name in hard} & served):
            for entry in self.cluster.api.store.table(table).in_order(
                quota["metadata"]["namespace"]
            ):
                at = (table, entry.key)
                known = before.get(at)
                if known is None or known[0] != entry.version:
                    known = (entry.version, _usage_in(quota, table, entry))
                now[at] = known
                total.update(known[1])
        self._usage[key] = now
        return total

    def _keys_of_change(self, seen: ItemChange) -> Iterator[str]:
        item = seen.item
        if item.table == QUOTAS:
            if seen.after is None or seen.before is None or _spec_changed(seen):
                self._usage.pop(item.key, None)
            yield item.key
        elif item.namespace and _frees(seen):
            for key, quota in self.cluster.cache.items(QUOTAS).items():
                if quota.namespace == item.namespace:
                    yield key


def _usage_in(quota: Json, table: str, entry: StoredObject) -> Nanos:
    item = entry.object
    return usage_of(table, item) if applies(quota, table, item) else {}


def _spec_changed(seen: ItemChange) -> bool:
    before, after = seen.before, seen.after
    if before is None or after is None:
        return True
    return part(before.entry.object, "spec") != part(after.entry.object, "spec")


def _frees(seen: ItemChange) -> bool:
    """Whether a change may free something. The server itself counts what is created."""
    before, after = seen.before, seen.after
    if after is None:
        return True
    if before is None:
        return False
    if isinstance(before, PodItem) and isinstance(after, PodItem):
        return before.active != after.active
    return after.table in (CLAIMS, SERVICES, PODS)
