"""Expressions that select devices, in the Common Expression Language (CEL) of Kubernetes.

A library parses and checks an expression; Moorage evaluates it, step by step and within a bound.
"""

from moorage.cel.device_expression import (
    MOST_STEPS,
    DeviceExpression,
    DeviceExpressionError,
    DeviceReads,
    DeviceView,
    Version,
    compile_device_expression,
    count_compiled,
    is_version,
)
from moorage.cel.values import Meter

__all__ = [
    "MOST_STEPS",
    "DeviceExpression",
    "DeviceExpressionError",
    "DeviceReads",
    "DeviceView",
    "Meter",
    "Version",
    "compile_device_expression",
    "count_compiled",
    "is_version",
]
