"""Selectors of devices, under the names that this plugin uses for them."""

from mooring.cel import DeviceExpression as Selector
from mooring.cel import DeviceExpressionError as SelectorError
from mooring.cel import DeviceView, Version
from mooring.cel import compile_device_expression as compile_selector

__all__ = ["DeviceView", "Selector", "SelectorError", "Version", "compile_selector"]
