"""Controllers of pods: a selector that fits its template, and numbers that make sense."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.embedded.errors import Fault, invalid_value, required, unsupported
from mooring.embedded.names import label_faults
from mooring.objects.selector import LabelSelector, SelectorError, compile_selector

from .plain import Json, part
from .pod_faults import pod_spec_faults
from .selector_faults import label_selector_faults

_PERCENT = re.compile(r"[0-9]+%", re.ASCII)
_NEGATIVE = "must be greater than or equal to 0"


def count_faults(spec: Json, *names: str) -> Iterator[Fault]:
    """Numbers of which there cannot be fewer than none."""
    for name in names:
        count = spec.get(name)
        if count is not None and count < 0:
            yield invalid_value(f"spec.{name}", count, _NEGATIVE)


def selecting_faults(kind: str, spec: Json) -> Iterator[Fault]:
    """A controller must select the pods that it makes."""
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    elif not (selector.get("matchLabels") or selector.get("matchExpressions")):
        detail = f"empty selector is invalid for {kind}"
        yield invalid_value("spec.selector", selector, detail)
    else:
        found = list(label_selector_faults("spec.selector", selector))
        yield from found
        labels = part(part(part(spec, "template"), "metadata"), "labels")
        if not found and not _selects(selector, labels):
            detail = "`selector` does not match template `labels`"
            yield invalid_value("spec.template.metadata.labels", labels, detail)


def _selects(selector: Json, labels: Json) -> bool:
    try:
        compiled = compile_selector(msgspec.convert(selector, LabelSelector))
    except (msgspec.ValidationError, SelectorError):
        return False
    return compiled is not None and compiled.matches(labels)


def template_faults(spec: Json, restart_policies: tuple[str, ...] | None) -> Iterator[Fault]:
    """What is wrong with the template of pods."""
    template = part(spec, "template")
    at = "spec.template"
    labels = part(part(template, "metadata"), "labels")
    yield from label_faults(f"{at}.metadata.labels", labels)
    pod = part(template, "spec")
    claimed = [
        part(each, "metadata").get("name", "") for each in spec.get("volumeClaimTemplates") or ()
    ]
    yield from pod_spec_faults(f"{at}.spec", pod, claimed)
    policy = pod.get("restartPolicy", "Always")
    if restart_policies is not None and policy not in restart_policies:
        yield unsupported(f"{at}.spec.restartPolicy", policy, restart_policies)


def unchanged_faults(item: Json, old: Json, *names: str) -> Iterator[Fault]:
    """Fields of the spec that stay as they were created."""
    spec, before = part(item, "spec"), part(old, "spec")
    for name in names:
        if spec.get(name) != before.get(name):
            yield invalid_value(f"spec.{name}", spec.get(name), "field is immutable")


def budget_faults(spec: Json) -> Iterator[Fault]:
    """A budget says how many must stay, or how many may go, not both."""
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        detail = "minAvailable and maxUnavailable cannot be both set"
        yield invalid_value("spec", spec, detail)
    for name in ("minAvailable", "maxUnavailable"):
        yield from _share_faults(f"spec.{name}", spec.get(name))
    yield from label_selector_faults("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    known = ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in known:
        yield unsupported("spec.unhealthyPodEvictionPolicy", policy, known)


def _share_faults(at: str, share: Any) -> Iterator[Fault]:
    if isinstance(share, str):
        if not _PERCENT.fullmatch(share):
            detail = (
                "a valid percent string must be a numeric string followed by an ending '%' "
                "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            )
            yield invalid_value(at, share, detail)
        elif int(share[:-1]) > 100:
            yield invalid_value(at, share, "must not be greater than 100%")
    elif share is not None and share < 0:
        yield invalid_value(at, share, _NEGATIVE)
