"""Whether expressions select devices: each is asked once about all devices that look alike."""

from __future__ import annotations

from mooring.cluster.derived import Recent
from mooring.cluster.devices.models import DeviceContent
from mooring.objects.device import DeviceAttribute

from .cel import DeviceView, SelectorError, Version, compile_selector

# Answers are small, and there are as many as expressions times distinct devices.
_MOST_ANSWERS = 1_000_000


class SelectorProblem(Exception):
    """An expression that has no answer for a device."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class SelectorAnswers:
    """What expressions say of devices."""

    def __init__(self) -> None:
        self._answers: Recent[tuple[str, DeviceContent], tuple[bool, str]] = Recent(_MOST_ANSWERS)

    def matches(self, expression: str, content: DeviceContent) -> bool:
        """Raises SelectorProblem where the expression has no answer."""
        key = expression, content
        known = self._answers.find(key)
        if known is None:
            known = _ask(expression, content)
            self._answers.put(key, known)
        answer, problem = known
        if problem:
            raise SelectorProblem(problem)
        return answer

    def sweep(self) -> None:
        self._answers.sweep()


def _ask(expression: str, content: DeviceContent) -> tuple[bool, str]:
    selector = compile_selector(expression)
    if selector.problem:
        return False, f"CEL compile error: {selector.problem}"
    try:
        return selector.matches(view_of(content)), ""
    except SelectorError as error:
        return False, f"CEL runtime error: {error}"


def view_of(content: DeviceContent) -> DeviceView:
    """A device as expressions see it."""
    device = content.device
    return DeviceView(
        content.driver,
        tuple((name, _value(name, each)) for name, each in (device.attributes or {}).items()),
        tuple((name, str(each.value)) for name, each in (device.capacity or {}).items()),
        bool(device.allow_multiple_allocations),
    )


def _value(name: str, attribute: DeviceAttribute) -> bool | int | str | Version:
    version = None if attribute.version is None else Version(attribute.version)
    values = (attribute.string, attribute.int_value, attribute.bool_value, version)
    given = [value for value in values if value is not None]
    if len(given) != 1:
        raise SelectorError(f"attribute {name}: unsupported attribute value")
    return given[0]
