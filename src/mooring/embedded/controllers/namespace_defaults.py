"""What every namespace has: a service account, and the certificate of the API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.kinds.stored_kinds import ROOT_CERTIFICATE, ROOT_CERTIFICATE_NAMESPACE
from mooring.embedded.store.table import Json

from .cache import ItemChange
from .controller import Concerns, Controller, own_key
from .garbage import NAMESPACES

_ACCOUNTS, _MAPS = "serviceaccounts", "configmaps"
_ACCOUNT = "default"
_NOTE = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the "
    "kube-apiserver when using internal endpoints such as the internal service IP or "
    "kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
}


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
