"""Expressions that select devices, in the Common Expression Language (CEL) of Kubernetes.

A library parses and checks an expression; Mooring evaluates it, step by step and within a bound.
"""

from mooring.cel.device_expression import (
    DeviceExpression,
    DeviceExpressionError,
    DeviceView,
    Version,
    compile_device_expression,
)

__all__ = [
    "DeviceExpression",
    "DeviceExpressionError",
    "DeviceView",
    "Version",
    "compile_device_expression",
]
