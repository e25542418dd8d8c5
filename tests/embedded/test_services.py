"""Services get addresses and node ports that no other service has."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from tests.embedded.serving import SERVICES, Client, Json, service

PORT = {"port": 80, "protocol": "TCP", "targetPort": 80}
SINGLE = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param(
            {"clusterIP": "10.96.1.1"},
            {
                **SINGLE,
                "type": "ClusterIP",
                "clusterIP": "10.96.1.1",
                "clusterIPs": ["10.96.1.1"],
                "internalTrafficPolicy": "Cluster",
                "ports": [PORT],
            },
            id="of the cluster",
        ),
        pytest.param(
            {"clusterIP": "None"},
            {
                **SINGLE,
                "type": "ClusterIP",
                "clusterIP": "None",
                "clusterIPs": ["None"],
                "internalTrafficPolicy": "Cluster",
                "ports": [PORT],
            },
            id="headless",
        ),
        pytest.param(
            {"type": "NodePort", "clusterIP": "10.96.1.1", "ports": [{**PORT, "nodePort": 30001}]},
            {
                **SINGLE,
                "type": "NodePort",
                "clusterIP": "10.96.1.1",
                "clusterIPs": ["10.96.1.1"],
                "externalTrafficPolicy": "Cluster",
                "internalTrafficPolicy": "Cluster",
                "ports": [{**PORT, "nodePort": 30001}],
            },
            id="on every node",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "a.example", "ports": []},
            {
                "type": "ExternalName",
                "externalName": "a.example",
                "sessionAffinity": "None",
            },
            id="elsewhere",
        ),
    ],
)
async def test_what_a_service_is_completed_with(client: Client, given: Json, kept: Json) -> None:
    made = await client.create(SERVICES, service("x", **given))

    assert made["spec"] == kept


async def test_addresses_and_ports_are_taken_once(client: Client) -> None:
    await client.create(SERVICES, service("elsewhere", type="ExternalName", externalName="a.b"))
    specs = [
        (await client.create(SERVICES, service(f"s{index}", type="LoadBalancer")))["spec"]
        for index in range(20)
    ]
    addresses = {each["clusterIP"] for each in specs}
    ports = {each["ports"][0]["nodePort"] for each in specs}
    assert len(addresses) == len(ports) == 20
    assert all(each in ipaddress.ip_network("10.96.0.0/16") for each in map(_address, addresses))
    assert all(30_000 <= each <= 32_767 for each in ports)

    again: list[tuple[Any, str]] = [
        (service("x", clusterIP=specs[0]["clusterIP"]), "provided IP is already allocated"),
        (
            service("x", type="NodePort", ports=specs[0]["ports"]),
            "provided port is already allocated",
        ),
    ]
    for body, told in again:
        assert told in (await client.refused(422, "POST", SERVICES, body))["message"]


async def test_what_a_service_has_it_keeps(client: Client) -> None:
    made = await client.create(SERVICES, service("x", type="NodePort"))

    replaced = await client.put(f"{SERVICES}/x", service("x", type="NodePort"))
    closed = await client.patch(f"{SERVICES}/x", {"spec": {"type": "ClusterIP"}})
    outside = {"spec": {"type": "ExternalName", "externalName": "a.b"}}
    named = await client.patch(f"{SERVICES}/x", outside)

    assert replaced["spec"] == made["spec"]
    assert closed["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    assert closed["spec"]["ports"] == [PORT]
    assert "externalTrafficPolicy" not in closed["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies"} & set(named["spec"])


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text)


async def test_the_server_has_a_service_of_its_own(secure: Client) -> None:
    found = await secure.get(f"{SERVICES}/kubernetes")
    assert found["spec"]["clusterIP"] == "10.96.0.1"
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    piece = await secure.get(f"{slices}/kubernetes")
    assert piece["ports"][0]["port"] == secure.running.port
    trusted = await secure.get("/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt")
    assert secure.running.certificate is not None
    assert trusted["data"]["ca.crt"] == secure.running.certificate.pem.decode()
