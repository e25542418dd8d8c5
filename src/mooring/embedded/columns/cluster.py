"""Nodes, namespaces, services, events and the small kinds in a table."""

from __future__ import annotations

from datetime import datetime

from mooring.embedded.scale import selector_text

from .column import NAME, NONE, UNKNOWN, Column, Json, age, at, field, since, told

_ROLE = "node-role.kubernetes.io/"


def _node_status(item: Json) -> str:
    words = [
        "Ready" if each.get("status") == "True" else "NotReady"
        for each in at(item, "status.conditions", [])
        if each.get("type") == "Ready"
    ] or ["Unknown"]
    if at(item, "spec.unschedulable", False):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(item: Json) -> str:
    labels = at(item, "metadata.labels", {})
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> Column:
    def find(item: Json) -> str:
        addresses = at(item, "status.addresses", [])
        return next((each["address"] for each in addresses if each.get("type") == kind), NONE)

    return told(f"{kind.removesuffix('IP')}-IP", find, wide=True)


def _ports(item: Json) -> str:
    def one(port: Json) -> str:
        to_node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{to_node}/{port.get('protocol', 'TCP')}"

    return ",".join(one(each) for each in at(item, "spec.ports", [])) or NONE


def _external_address(item: Json) -> str:
    kind, given = at(item, "spec.type"), at(item, "spec.externalIPs", [])
    if kind == "ExternalName":
        return str(at(item, "spec.externalName"))
    if kind != "LoadBalancer":
        return ",".join(given) or NONE
    points = at(item, "status.loadBalancer.ingress", [])
    found = [each.get("ip") or each.get("hostname", "") for each in points]
    return ",".join([*found, *given]) or "<pending>"


def _event_object(item: Json) -> str:
    about = at(item, "involvedObject", {})
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(item: Json) -> str:
    component = at(item, "source.component", "") or at(item, "reportingComponent", "")
    host = at(item, "source.host", "") or at(item, "reportingInstance", "")
    return f"{component}, {host}" if host else str(component)


def _last_seen(item: Json, now: datetime) -> str:
    for path in ("series.lastObservedTime", "lastTimestamp", "eventTime"):
        moment = at(item, path, "")
        if moment:
            return since(moment, now)
    return UNKNOWN


def _first_seen(item: Json, now: datetime) -> str:
    return since(at(item, "firstTimestamp", "") or at(item, "eventTime", ""), now)


def _count(item: Json) -> str:
    return str(at(item, "series.count", 0) or at(item, "count", 0) or 1)


def _size(*paths: str) -> Column:
    return told("Data", lambda item: sum(len(at(item, path, {})) for path in paths))


NODES = (
    NAME,
    told("Status", _node_status),
    told("Roles", _roles),
    age(),
    field("Version", "status.nodeInfo.kubeletVersion", ""),
    _address("InternalIP"),
    _address("ExternalIP"),
    field("OS-Image", "status.nodeInfo.osImage", UNKNOWN, wide=True),
    field("Kernel-Version", "status.nodeInfo.kernelVersion", UNKNOWN, wide=True),
    field("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", UNKNOWN, wide=True),
)
NAMESPACES = (NAME, field("Status", "status.phase", ""), age())
SERVICES = (
    NAME,
    field("Type", "spec.type"),
    field("Cluster-IP", "spec.clusterIP"),
    told("External-IP", _external_address),
    told("Port(s)", _ports),
    age(),
    told(
        "Selector", lambda item: selector_text(at(item, "spec.selector", None)) or NONE, wide=True
    ),
)
EVENTS = (
    Column("Last Seen", _last_seen),
    field("Type", "type", ""),
    field("Reason", "reason", ""),
    told("Object", _event_object),
    field("Subobject", "involvedObject.fieldPath", "", wide=True),
    told("Source", _event_source, wide=True),
    told("Message", lambda item: str(at(item, "message", "")).strip()),
    Column("First Seen", _first_seen, priority=1),
    told("Count", _count, wide=True),
    Column("Name", lambda item, _: item["metadata"]["name"], priority=1, format="name"),
)
SECRETS = (NAME, field("Type", "type", ""), _size("data"), age())
CONFIG_MAPS = (NAME, _size("data", "binaryData"), age())
LEASES = (NAME, field("Holder", "spec.holderIdentity", ""), age())
PRIORITY_CLASSES = (
    NAME,
    told("Value", lambda item: at(item, "value", 0), type="integer"),
    told("Global-Default", lambda item: at(item, "globalDefault", False), type="boolean"),
    age(),
    field("PreemptionPolicy", "preemptionPolicy", ""),
)
