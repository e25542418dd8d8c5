"""Selectors of devices, under the names that this plugin uses for them."""

from mooring.cel import (
    DeviceExpression as Selector,
    DeviceExpressionError as SelectorError,
    DeviceView,
    Version,
    compile_device_expression as compile_selector,
)

__all__ = ["DeviceView", "Selector", "SelectorError", "Version", "compile_selector"]
