"""Answers recorded from the CEL environment of Kubernetes 1.36."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from moorage.cel import DeviceExpression, DeviceExpressionError, DeviceView, Version

RECORDED = Path(__file__).parents[1] / "golden" / "cel" / "cel.jsonl.gz"


def read_cases() -> list[dict[str, Any]]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def view_of(case: dict[str, Any]) -> DeviceView:
    """The device of a case as an expression sees it."""
    device = case["device"]
    attributes = []
    for name, written in device.get("attributes", {}).items():
        ((kind, value),) = written.items()
        attributes.append((name, Version(value) if kind == "version" else value))
    capacity = [(name, each["value"]) for name, each in device.get("capacity", {}).items()]
    return DeviceView(
        case["driver"],
        tuple(attributes),
        tuple(capacity),
        device.get("allowMultipleAllocations", False),
    )


def ask(selector: DeviceExpression, device: DeviceView) -> bool | str:
    """The answer, or the text of the error."""
    try:
        return selector.matches(device)
    except DeviceExpressionError as error:
        return str(error)
