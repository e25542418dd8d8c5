"""Finds whether expressions select devices. It evaluates like devices once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from moorage.cel import (
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
from moorage.cluster.derived import Recent
from moorage.cluster.devices.models import DeviceContent
from moorage.objects.device import DeviceAttribute

# Answers are small. Devices that are alike in what an expression reads share one.
_MOST_ANSWERS = 1_000_000

#: The cost of preparing a device for an expression, in steps of an evaluation.
_STEPS_PER_DEVICE = 30

#: The cost of compiling an expression, in such steps for each character.
_STEPS_PER_CHARACTER = 3

_COMPILATION = "CEL compile error: "

# The most characters of a short expression.
_SHORT = 100

#: The most steps that may be spent on new answers at a time, about a tenth of a second. A decision
#: does so once or twice.
MOST_STEPS_OF_ANSWERS = 150_000


class SelectorProblem(Exception):
    """An expression fails for a device."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        #: Whether it fails for every device, because it cannot be compiled.
        self.is_compilation = text.startswith(_COMPILATION)


class AnswersSpentError(Exception):
    """A decision needs more new answers than it may find. Those that were found are kept."""


class SelectorAnswers:
    """The answers of expressions about devices."""

    def __init__(self) -> None:
        self._answers: Recent[Hashable, tuple[bool, str]] = Recent(_MOST_ANSWERS)
        #: How many steps may still be spent on new answers; None means no limit.
        self._left: int | None = None

    def limit(self, steps: int | None) -> None:
        """Sets how many steps may be spent on new answers from now on; None means no limit."""
        self._left = steps

    def matches(self, expression: str, content: DeviceContent) -> bool:
        """Whether an expression selects a device.

        Raises SelectorProblem if the expression fails, and AnswersSpentError if no steps are left.
        """
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
        """Counts the steps of other work; raises AnswersSpentError if none are left."""
        if self._left is not None:
            self._left -= steps
            if self._left <= 0:
                raise AnswersSpentError

    def begin(self, steps: int) -> None:
        """Counts the steps of work that runs to its end once it has begun.

        Raises AnswersSpentError if no steps are left before it begins.
        """
        if self._left is not None:
            if self._left <= 0:
                raise AnswersSpentError
            self._left -= steps

    def sweep(self) -> None:
        self._answers.sweep()

    def join_reads(self, expressions: Iterable[str]) -> DeviceReads | None:
        """Returns all that some expressions read; None if one of them may read anything."""
        joined: dict[tuple[str, str], None] = {}
        for expression in expressions:
            reads = self._compile(expression).reads
            if reads is None:
                return None
            joined.update(dict.fromkeys(reads.attributes))
        return DeviceReads(joined)

    def _compile(self, expression: str) -> Selector:
        """Returns the compiled expression; raises AnswersSpentError if no steps are left.

        A short one is compiled in any case: that takes no longer than an answer.
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
            return False, f"{_COMPILATION}{selector.problem}"
        meter = Meter(MOST_STEPS)
        try:
            return selector.matches(view_of(content, selector.reads), meter), ""
        except SelectorError as error:
            return False, f"CEL runtime error: {error}"
        finally:
            if self._left is not None:
                self._left -= meter.steps + _STEPS_PER_DEVICE


def look_of(content: DeviceContent, reads: DeviceReads | None) -> Hashable:
    """Returns a value that is equal for devices that are alike in what an expression reads."""
    if reads is None or not content.is_readable:
        return content
    attributes = content.device.attributes or {}
    return content.rest, *map(attributes.get, reads.names(content.driver))


def view_of(content: DeviceContent, reads: DeviceReads | None = None) -> DeviceView:
    """Returns a device as expressions see it. With `reads` it has only the attributes in these."""
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
