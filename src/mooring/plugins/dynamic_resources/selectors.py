"""Whether expressions select devices: each is asked once about all that look alike to it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from mooring.cel import (
    MOST_STEPS,
    DeviceExpression as Selector,
    DeviceExpressionError as SelectorError,
    DeviceReads,
    DeviceView,
    Meter,
    Version,
    compile_device_expression as compile_selector,
    count_compiled,
)
from mooring.cluster.derived import Recent
from mooring.cluster.devices.models import DeviceContent
from mooring.objects.device import DeviceAttribute

# Answers are small, and there are as many as expressions times devices that look different.
_MOST_ANSWERS = 1_000_000

#: What it takes to show a device to an expression, in steps of an evaluation.
_STEPS_PER_DEVICE = 30

#: What it takes to compile an expression.
_STEPS_PER_CHARACTER = 3

# Of so many characters.
_SHORT = 100

#: So many steps may be spent on new answers at once, about a tenth of a second. A decision asks
#: once or twice.
MOST_STEPS_OF_ANSWERS = 150_000


class SelectorProblem(Exception):
    """An expression that has no answer for a device."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class AnswersSpentError(Exception):
    """More answers are missing than one decision may find. Those that were found are kept."""


class SelectorAnswers:
    """What expressions say of devices."""

    def __init__(self) -> None:
        self._answers: Recent[Hashable, tuple[bool, str]] = Recent(_MOST_ANSWERS)
        #: How many steps may be spent on new answers; None is as many as it takes.
        self._left: int | None = None

    def limit(self, steps: int | None) -> None:
        """So many steps may be spent on new answers from now on; None is as many as it takes."""
        self._left = steps

    def matches(self, expression: str, content: DeviceContent) -> bool:
        """Raises SelectorProblem where the expression has no answer, and AnswersSpentError."""
        selector = self._compile(expression)
        key = expression, look_of(content, selector.reads)
        known = self._answers.find(key)
        if known is None:
            if self._left is not None and self._left <= 0:
                raise AnswersSpentError
            known = self._ask(selector, content)
            self._answers.put(key, known)
        answer, problem = known
        if problem:
            raise SelectorProblem(problem)
        return answer

    def spend(self, steps: int) -> None:
        """Counts other work for which answers are sought; raises AnswersSpentError."""
        if self._left is not None:
            self._left -= steps
            if self._left <= 0:
                raise AnswersSpentError

    def begin(self, steps: int) -> None:
        """The same for work that is not left half done; raises if none may begin any more."""
        if self._left is not None:
            if self._left <= 0:
                raise AnswersSpentError
            self._left -= steps

    def sweep(self) -> None:
        self._answers.sweep()

    def join_reads(self, expressions: Iterable[str]) -> DeviceReads | None:
        """All that some expressions read; None if one of them may read anything."""
        joined: dict[tuple[str, str], None] = {}
        for expression in expressions:
            reads = self._compile(expression).reads
            if reads is None:
                return None
            joined.update(dict.fromkeys(reads.attributes))
        return DeviceReads(joined)

    def _compile(self, expression: str) -> Selector:
        """The compiled expression. A new one takes time: raises AnswersSpentError if none is left.

        A short one takes no longer than an answer, and so is compiled in any case.
        """
        if self._left is None:
            return compile_selector(expression)
        if self._left <= 0 and len(expression) > _SHORT:
            raise AnswersSpentError
        before = count_compiled()
        selector = compile_selector(expression)
        if count_compiled() != before:
            self._left -= _STEPS_PER_CHARACTER * len(expression)
        return selector

    def _ask(self, selector: Selector, content: DeviceContent) -> tuple[bool, str]:
        if selector.problem:
            return False, f"CEL compile error: {selector.problem}"
        meter = Meter(MOST_STEPS)
        try:
            return selector.matches(view_of(content, selector.reads), meter), ""
        except SelectorError as error:
            return False, f"CEL runtime error: {error}"
        finally:
            if self._left is not None:
                self._left -= meter.steps + _STEPS_PER_DEVICE


def look_of(content: DeviceContent, reads: DeviceReads | None) -> Hashable:
    """Equal for devices that an expression which reads so much cannot tell apart."""
    if reads is None or not content.is_readable:
        return content
    attributes = content.device.attributes or {}
    return content.rest, *map(attributes.get, reads.names(content.driver))


def view_of(content: DeviceContent, reads: DeviceReads | None = None) -> DeviceView:
    """A device as expressions see it; if it is known what they read, with these attributes."""
    device = content.device
    attributes = device.attributes or {}
    if reads is not None and content.is_readable:
        named = reads.names(content.driver)
        attributes = {name: attributes[name] for name in named if name in attributes}
    return DeviceView(
        content.driver,
        tuple((name, _value(name, each)) for name, each in attributes.items()),
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


__all__ = ["DeviceView", "Selector", "SelectorError", "Version", "compile_selector"]
