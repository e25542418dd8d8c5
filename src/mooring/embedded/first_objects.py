"""The objects that every cluster has from the start."""

from __future__ import annotations

import ipaddress

from mooring.embedded.api.object_api import ObjectApi
from mooring.embedded.kinds.cluster_kinds import SYSTEM_PRIORITIES
from mooring.embedded.kinds.stored_kinds import ROOT_CERTIFICATE, ROOT_CERTIFICATE_NAMESPACE
from mooring.embedded.store.table import Json

# The namespaces of every cluster.
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

_SERVICE = "kubernetes"
_PORT = {"name": "https", "protocol": "TCP"}


def furnish(api: ObjectApi) -> None:
    """Makes the namespaces and priority classes that every cluster has."""
    namespaces, classes = api.kinds["namespaces"], api.kinds["priorityclasses.scheduling.k8s.io"]
    for name in _NAMESPACES:
        if api.find(namespaces, "", name) is None:
            api.create(namespaces, "", {"metadata": {"name": name}})
    for name, value in SYSTEM_PRIORITIES.items():
        if api.find(classes, "", name) is None:
            api.create(classes, "", {"metadata": {"name": name}, "value": value})


def publish_server(api: ObjectApi, host: str, port: int, certificate: str) -> None:
    """Makes the Service of the API server, its endpoints, and the certificate that clients trust.

    A server that starts anew may have another port and has another certificate.
    """
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{**_PORT, "port": 443, "targetPort": port}]
    spec = {"clusterIP": "10.96.0.1", "ports": ports, "type": "ClusterIP"}
    _publish(api, "services", "default", {"metadata": {"labels": labels}, "spec": spec})
    address = _address(host)
    ready: Json = {"addresses": [{"ip": address}], "ports": [{**_PORT, "port": port}]}
    _publish(api, "endpoints", "default", {"metadata": {}, "subsets": [ready]})
    piece = {
        "metadata": {"labels": {"kubernetes.io/service-name": _SERVICE}},
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{**_PORT, "port": port}],
    }
    _publish(api, "endpointslices.discovery.k8s.io", "default", piece)
    data = {"metadata": {"name": ROOT_CERTIFICATE}, "data": {"ca.crt": certificate}}
    _publish(api, "configmaps", ROOT_CERTIFICATE_NAMESPACE, data)


def _publish(api: ObjectApi, resource: str, namespace: str, item: Json) -> None:
    """Makes an object, or changes the one that is there."""
    kind = api.kinds[resource]
    name = item["metadata"].setdefault("name", _SERVICE)
    found = api.find(kind, namespace, name)
    if found is None:
        api.create(kind, namespace, item)
        return
    stored = found.object
    merged = {**stored, **item, "metadata": {**stored["metadata"], **item["metadata"]}}
    if "spec" in item:
        merged["spec"] = {**stored["spec"], **item["spec"]}
    api.update(kind, namespace, name, merged)


def _address(host: str) -> str:
    """Returns a host as an address; endpoints cannot have names."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "127.0.0.1"
