"""Limit ranges: what containers get that say nothing, and how much may be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from moorage.embedded.api.decoding import part
from moorage.embedded.api.kind import KindRules, ServedKind, make_built_in
from moorage.embedded.request_refusals import (
    Fault,
    duplicate,
    forbidden,
    forbidden_field,
    invalid_value,
    required,
)
from moorage.embedded.store.object_store import Json, ObjectStore
from moorage.objects.quantity import Quantity

from .pod_spec_rules import amount_faults, pod_total

_CONTAINER, _POD, _CLAIM = "Container", "Pod", "PersistentVolumeClaim"
_NOTE = "kubernetes.io/limit-ranger"
_AMOUNTS = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
# What has to be at most what, where both are given.
_ORDERED = (
    ("min", "max"),
    ("min", "defaultRequest"),
    ("defaultRequest", "max"),
    ("min", "default"),
    ("default", "max"),
    ("defaultRequest", "default"),
)


class LimitRangeRules(KindRules):
    """The rules of limit ranges; a container's limits say what it gets by default."""

    def default(self, item: Json) -> None:
        for limit in part(item, "spec").get("limits") or ():
            if limit.get("type") == _CONTAINER:
                limit["default"] = {**part(limit, "max"), **part(limit, "default")}
                requests = {**part(limit, "min"), **limit["default"]}
                limit["defaultRequest"] = {**requests, **part(limit, "defaultRequest")}

    def faults(self, item: Json) -> Iterator[Fault]:
        types = set()
        for index, limit in enumerate(part(item, "spec").get("limits") or ()):
            at, kind = f"spec.limits[{index}]", limit.get("type", "")
            if not kind:
                yield required(f"{at}.type")
            elif kind in types:
                yield duplicate(f"{at}.type", kind)
            types.add(kind)
            yield from _limit_faults(at, kind, limit)


def _limit_faults(at: str, kind: str, limit: Json) -> Iterator[Fault]:
    for name in _AMOUNTS:
        yield from amount_faults(f"{at}.{name}", part(limit, name), named=False)
    if kind == _POD:
        for name in ("default", "defaultRequest"):
            if limit.get(name):
                yield forbidden_field(f"{at}.{name}", "may not be specified when `type` is 'Pod'")
        return
    if kind == _CLAIM and not {"storage"} & {*part(limit, "min"), *part(limit, "max")}:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{at}.limits", detail)
    yield from _order_faults(at, limit)


def _order_faults(at: str, limit: Json) -> Iterator[Fault]:
    for low, high in _ORDERED:
        for name in sorted(part(limit, low).keys() & part(limit, high).keys()):
            less, more = limit[low][name], limit[high][name]
            if Quantity.parse(less) > Quantity.parse(more):
                detail = f"{low} value {less} is greater than {high} value {more}"
                yield invalid_value(f"{at}.{low}[{name}]", less, detail)


@dataclass(frozen=True, slots=True)
class _Use:
    """What a container, pod or claim requests and may use."""

    requests: Mapping[str, str | int]
    limits: Mapping[str, str | int]

    def faults(self, limit: Json) -> Iterator[str]:
        """Yields how the use breaks a limit."""
        kind = limit["type"]
        # Of a claim only the requests count.
        capped = "request" if kind == _CLAIM else "limit"
        for name, least in sorted(part(limit, "min").items()):
            yield from self._outside(f"minimum {name} usage per {kind}", name, "request", least)
        for name, most in sorted(part(limit, "max").items()):
            yield from self._outside(f"maximum {name} usage per {kind}", name, capped, most)
        for name, ratio in sorted(part(limit, "maxLimitRequestRatio").items()):
            yield from self._ratio_faults(kind, name, ratio)

    def _outside(self, title: str, name: str, needed: str, bound: str) -> Iterator[str]:
        """Yields what is beyond a bound, or that what the bound needs is not said."""
        use = {"request": self.requests.get(name), "limit": self.limits.get(name)}
        sign = -1 if title.startswith("minimum") else 1
        if use[needed] is None:
            yield f"{title} is {bound}.  No {needed} is specified"
            return
        for each in (needed, "limit" if needed == "request" else "request"):
            amount = use[each]
            if amount is not None and sign * (_nanos(amount) - _nanos(bound)) > 0:
                yield f"{title} is {bound}, but {each} is {_text(amount)}"
                return

    def _ratio_faults(self, kind: str, name: str, ratio: str) -> Iterator[str]:
        text = f"{name} max limit to request ratio per {kind} is {ratio}, but"
        request, limit = _nanos(self.requests.get(name, 0)), _nanos(self.limits.get(name, 0))
        for title, amount in (("request", request), ("limit", limit)):
            if not amount:
                yield f"{text} no {title} is specified or {title} is 0"
                return
        if limit * 10**9 > Quantity.parse(ratio) * request:
            yield f"{text} provided ratio is {limit / request:f}"


def _nanos(amount: str | int) -> int:
    return int(Quantity.parse(amount)) if isinstance(amount, str) else amount


def _text(amount: str | int) -> str:
    if isinstance(amount, str):
        return amount
    whole, rest = divmod(amount, 10**9)
    return f"{-(-amount // 10**6)}m" if rest else str(whole)


def limit_pod(store: ObjectStore, item: Json) -> bool:
    """Gives the containers of a new pod what they do not say; refuses one beyond the limits.

    Returns whether anything was filled in.
    """
    ranges = _ranges(store, item)
    if not ranges:
        return False
    notes = [note for each in ranges for note in _fill_containers(item["spec"], each)]
    if notes:
        annotations = item["metadata"].setdefault("annotations", {})
        annotations[_NOTE] = f"LimitRanger plugin set: {'; '.join(notes)}"
    _refuse("pods", item, (fault for each in ranges for fault in _pod_faults(item["spec"], each)))
    return bool(notes)


def limit_claim(store: ObjectStore, item: Json) -> None:
    """Refuses a claim for less or more storage than the limits allow."""
    requests = part(part(item["spec"], "resources"), "requests")
    limits = [each for ranges in _ranges(store, item) for each in ranges if each["type"] == _CLAIM]
    faults = (fault for each in limits for fault in _Use(requests, {}).faults(each))
    _refuse("persistentvolumeclaims", item, faults)


def _ranges(store: ObjectStore, item: Json) -> list[list[Json]]:
    """Returns the limits of each limit range in the namespace of an object."""
    entries = store.table("limitranges").in_order(item["metadata"].get("namespace", ""))
    return [part(entry.object, "spec").get("limits") or [] for entry in entries]


def _fill_containers(spec: Json, limits: list[Json]) -> Iterator[str]:
    """Fills in defaults; yields what was set, as kube-apiserver notes it."""
    own = [each for each in limits if each["type"] == _CONTAINER]
    for field, title in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or ():
            for what, source in (("requests", "defaultRequest"), ("limits", "default")):
                wanted = {key: each for limit in own for key, each in part(limit, source).items()}
                has = part(container.setdefault("resources", {}), what)
                missing = wanted.keys() - has.keys()
                if missing:
                    container["resources"][what] = {**wanted, **has}
                    names = ", ".join(sorted(missing))
                    yield f"{names} {what.removesuffix('s')} for {title} {container['name']}"


def _pod_faults(spec: Json, limits: list[Json]) -> Iterator[str]:
    total: _Use | None = None
    for limit in limits:
        if limit["type"] == _CONTAINER:
            for each in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = part(each, "resources")
                use = _Use(part(resources, "requests"), part(resources, "limits"))
                yield from use.faults(limit)
        elif limit["type"] == _POD:
            total = total or _Use(pod_total(spec, "requests"), pod_total(spec, "limits"))
            yield from total.faults(limit)


def _refuse(resource: str, item: Json, faults: Iterable[str]) -> None:
    found = list(faults)
    if found:
        why = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        raise forbidden(resource, item["metadata"]["name"], why)


def limit_range_kinds() -> Iterator[ServedKind]:
    """Yields limit ranges."""
    yield make_built_in(
        "", "core.v1", "LimitRange", "limitranges", LimitRangeRules(), short_names=("limits",)
    )
