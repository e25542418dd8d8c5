"""Cron jobs and ingresses in a table."""

from __future__ import annotations

from datetime import datetime

from .column import NAME, NONE, Column, Json, age, at, field, since, told


def _last_schedule(item: Json, now: datetime) -> str:
    moment = at(item, "status.lastScheduleTime", "")
    return since(moment, now) if moment else NONE


def _hosts(item: Json) -> str:
    named = [each["host"] for each in at(item, "spec.rules", []) if each.get("host")]
    return ",".join(named) or "*"


def _addresses(item: Json) -> str:
    points = at(item, "status.loadBalancer.ingress", [])
    return ",".join(each.get("ip") or each.get("hostname", "") for each in points)


CRON_JOBS = (
    NAME,
    field("Schedule", "spec.schedule"),
    field("Timezone", "spec.timeZone"),
    told("Suspend", lambda item: str(at(item, "spec.suspend", False))),
    told("Active", lambda item: len(at(item, "status.active", [])), type="integer"),
    Column("Last Schedule", _last_schedule),
    age(),
)
INGRESSES = (
    NAME,
    field("Class", "spec.ingressClassName"),
    told("Hosts", _hosts),
    told("Address", _addresses),
    told("Ports", lambda item: "80, 443" if at(item, "spec.tls", []) else "80"),
    age(),
)
