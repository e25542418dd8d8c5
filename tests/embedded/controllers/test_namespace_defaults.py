"""Every namespace has a service account and the certificate of the API server."""

from __future__ import annotations

from moorage.embedded.server import publish_server
from tests.embedded.controllers.playing import Play, played

CERTIFICATE = "kube-root-ca.crt"


def certificate(cluster: Play, namespace: str) -> str:
    return str(cluster.get("configmaps", CERTIFICATE, namespace)["data"]["ca.crt"])


@played
async def test_a_namespace_has_them_from_the_start(cluster: Play) -> None:
    publish_server(cluster.api, "127.0.0.1", 6443, "first")
    cluster.create("namespaces", "team")
    await cluster.settle()

    for namespace in ("default", "kube-system", "team"):
        assert cluster.get("serviceaccounts", "default", namespace)
        assert certificate(cluster, namespace) == "first"


@played
async def test_they_come_back_and_follow_the_server(cluster: Play) -> None:
    publish_server(cluster.api, "127.0.0.1", 6443, "first")
    await cluster.settle()
    cluster.delete("serviceaccounts", "default")
    changed = cluster.get("configmaps", CERTIFICATE)
    cluster.update("configmaps", {**changed, "data": {"ca.crt": "forged"}})
    await cluster.settle()
    assert cluster.get("serviceaccounts", "default")
    assert certificate(cluster, "default") == "first"

    publish_server(cluster.api, "127.0.0.1", 6444, "second")
    cluster.delete("configmaps", CERTIFICATE)
    await cluster.settle()
    assert certificate(cluster, "default") == "second"
    assert cluster.get("services", "kubernetes")["spec"]["ports"][0]["targetPort"] == 6444
    (subset,) = cluster.get("endpoints", "kubernetes")["subsets"]
    assert subset == {
        "addresses": [{"ip": "127.0.0.1"}],
        "ports": [{"name": "https", "protocol": "TCP", "port": 6444}],
    }


@played
async def test_a_namespace_that_goes_does_not_get_them_again(cluster: Play) -> None:
    publish_server(cluster.api, "127.0.0.1", 6443, "first")
    cluster.create("namespaces", "team")
    await cluster.settle()
    cluster.delete("namespaces", "team")
    await cluster.settle()

    assert "team" not in cluster.names("namespaces")
