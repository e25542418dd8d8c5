"""Expressions that select devices, in the Common Expression Language (CEL) of Kubernetes.

A library parses and checks an expression; Mooring evaluates it, step by step and within a bound.
"""

from mooring.cel.device_selector import (
    DeviceSelector,
    DeviceSelectorError,
    DeviceView,
    Version,
    compile_device_selector,
)

__all__ = [
    "DeviceSelector",
    "DeviceSelectorError",
    "DeviceView",
    "Version",
    "compile_device_selector",
]
