"""Expressions that select devices: compiled once, evaluated once per distinct device."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from moorage.cel import checker
from moorage.cel.functions.quantities import parse_quantity
from moorage.cel.functions.versions import parse_version
from moorage.cel.program import Program, build_program
from moorage.cel.syntax import read_tree
from moorage.cel.tree import Call, Comprehension, Constant, Name, Node, Select, children, walk
from moorage.cel.values import CelError, DefaultMap, Device, Meter, TooManyStepsError, type_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: What the API server allows for one expression.
LONGEST_EXPRESSION = 10 * 1024

#: An evaluation may take this many steps, about 50 milliseconds. An expression without loops takes
#: as many as it has parts; two loops inside each other over 32 attributes take about 10,000.
MOST_STEPS = 50_000

#: Each of these macros writes its target twice, so that a chain of them doubles every time.
_DOUBLING_MACROS = ("optMap", "optFlatMap")
_MOST_DOUBLINGS = 6

#: What every device has. To ask for it by `has` is of no use, but allowed.
_FIELDS = ("driver", "allowMultipleAllocations", "attributes", "capacity")
_TEST_OF_DEVICE = re.compile(rf"\bhas\s*\(\s*device\s*\.\s*(?:{'|'.join(_FIELDS)})\s*\)")

_TAKING_PATTERNS = ("matches", "find", "findAll")

#: Programs of long expressions are large, so that few of them are kept.
_LONG = 1024

_DEVICE = Device()


class DeviceExpressionError(Exception):
    """The expression has no answer for this device. The text says why."""


@dataclass(frozen=True)
class Version:
    """The value of an attribute that is a semantic version."""

    text: str


AttributeValue = bool | int | str | Version


@dataclass(frozen=True)
class DeviceView:
    """What an expression sees of a device. Equal devices get equal answers.

    Names are `domain/id`; a name without a domain belongs to the driver's.
    """

    driver: str
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    allow_multiple_allocations: bool = False


class DeviceReads:
    """The attributes that expressions read, each as domain and id. They may read all the rest."""

    def __init__(self, attributes: Iterable[tuple[str, str]] = ()) -> None:
        self.attributes = tuple(attributes)
        self._names: dict[str, tuple[str, ...]] = {}

    def names(self, driver: str) -> tuple[str, ...]:
        """Returns their names on devices of a driver; those of its own domain have two names."""
        names = self._names.get(driver)
        if names is None:
            own = (name for domain, name in self.attributes if domain == driver)
            whole = (f"{domain}/{name}" for domain, name in self.attributes)
            names = self._names[driver] = (*whole, *own)
        return names


class DeviceExpression:
    """One expression. `problem` says why it cannot be used, and is empty otherwise."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.problem = ""
        #: The attributes that it reads by name, as `domain/id`.
        self.attributes: tuple[str, ...] = ()
        #: None if it may read any attribute. Devices that differ in others get the same answer.
        self.reads: DeviceReads | None = DeviceReads()
        self._program: Program | None = None
        try:
            tree = _check(expression)
            self._program = build_program(tree)
            self.reads = _find_reads(tree)
            self.attributes = tuple(dict.fromkeys(_attributes(tree)))
        except CelError as error:
            self.problem = str(error)

    def matches(self, device: DeviceView, meter: Meter | None = None) -> bool:
        """Whether the expression selects the device. The meter counts the steps.

        Raises DeviceExpressionError where it has no answer. Nothing is remembered: the caller asks
        once per distinct device.
        """
        if self._program is None:
            raise DeviceExpressionError(self.problem)
        try:
            value = self._program.run(_variables(device), meter or Meter(MOST_STEPS))
        except (CelError, TooManyStepsError) as error:
            raise DeviceExpressionError(str(error)) from None
        except RecursionError:
            raise DeviceExpressionError("the values are nested too deeply") from None
        if not isinstance(value, bool):
            kind = type_name(value)
            raise DeviceExpressionError(
                f"CEL result of type {kind} could not be converted to bool: "
                f"unsupported native conversion from {kind} to 'bool'"
            )
        return value


def compile_device_expression(expression: str) -> DeviceExpression:
    """Returns the compiled expression. It never raises: see `DeviceExpression.problem`."""
    return _compile_long(expression) if len(expression) > _LONG else _compile_short(expression)


def count_compiled() -> int:
    """Returns how many expressions were compiled so far; those that were known do not count."""
    return _compile_short.cache_info().misses + _compile_long.cache_info().misses


_compile_short = lru_cache(maxsize=1024)(DeviceExpression)
_compile_long = lru_cache(maxsize=32)(DeviceExpression)


def _check(expression: str) -> Node:
    """Returns the tree of an expression that Kubernetes would take; raises CelError for others."""
    if not expression.isprintable() and re.search("[\ud800-\udfff]", expression):
        raise CelError("the expression is not valid Unicode")
    if len(expression.encode()) > LONGEST_EXPRESSION:
        raise CelError(f"the expression is longer than {LONGEST_EXPRESSION} bytes")
    doublings = sum(map(expression.count, _DOUBLING_MACROS))
    if doublings > _MOST_DOUBLINGS:
        raise CelError(
            f"the functions optMap and optFlatMap occur more than {_MOST_DOUBLINGS} times"
        )
    if "has" in expression:
        expression = _answer_tests_of_device(expression)
    serialized, kind = checker.check(expression)
    if kind not in ("bool", "dyn"):
        raise CelError(f"must evaluate to bool or the unknown type, not {kind}")
    tree = read_tree(serialized)
    _check_patterns(tree)
    return tree


def _attributes(tree: Node) -> Iterator[str]:
    """Yields names in `device.attributes["domain"].id` and `device.attributes["domain"]["id"]`."""
    for node in walk(tree):
        match node:
            case Select(Call("_[_]", (Name("device.attributes"), Constant(str(domain)))), name):
                yield f"{domain}/{name}"
            case Call(
                "_[_]" | "_[?_]" | "_?._",
                (
                    Call("_[_]", (Name("device.attributes"), Constant(str(domain)))),
                    Constant(str(name)),
                ),
            ):
                yield f"{domain}/{name}"


def _find_reads(tree: Node) -> DeviceReads | None:
    """Returns which attributes a tree reads by name; None if it looks at them in any other way."""
    found: dict[tuple[str, str], None] = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        match node:
            case Select(Call("_[_]", (Name("device.attributes"), Constant(str(domain)))), name):
                found[domain, name] = None
            case Call(
                "_[_]" | "_[?_]" | "_?._",
                (
                    Call("_[_]", (Name("device.attributes"), Constant(str(domain)))),
                    Constant(str(name)),
                ),
            ):
                found[domain, name] = None
            case Name("device" | "device.attributes"):
                return None
            case _:
                waiting += children(node)
    return DeviceReads(found)


def _answer_tests_of_device(expression: str) -> str:
    """Returns the expression with `true` for `has(device.driver)`: a device has all of its fields.

    The library would take it for `device.driver`. Raises CelError where the text does not tell
    which parts are meant: a loop may have a variable of that name.
    """
    tree = read_tree(checker.parse(expression))
    tested = _find_tests_of_device(tree)
    if not tested:
        return expression
    written, count = _TEST_OF_DEVICE.subn(lambda found: "true".ljust(len(found[0])), expression)
    # As many texts as tests were replaced, and no test is left: so these were the tests.
    if (
        count != len(tested)
        or _find_tests_of_device(read_tree(checker.parse(written)))
        or any(
            isinstance(node, Comprehension) and "device" in _variables_of(node)
            for node in walk(tree)
        )
    ):
        raise CelError(f"the function has is not supported for device.{tested[0]} here")
    return written


def _find_tests_of_device(tree: Node) -> list[str]:
    """Returns the fields in `has(device.field)`, of those that there are."""
    return [
        node.field
        for node in walk(tree)
        if isinstance(node, Select)
        and node.test
        and node.operand == Name("device")
        and node.field in _FIELDS
    ]


def _variables_of(loop: Comprehension) -> tuple[str, str, str]:
    return loop.item, loop.second_item, loop.result_name


def _check_patterns(tree: Node) -> None:
    """Refuses regular expressions that are written out and cannot be read."""
    for node in walk(tree):
        if not isinstance(node, Call) or node.function not in _TAKING_PATTERNS:
            continue
        pattern = node.arguments[1]
        if isinstance(pattern, Constant) and isinstance(pattern.value, str):
            try:
                checker.matches("", pattern.value)
            except CelError as error:
                raise CelError(f"invalid {node.function} argument: {error}") from None


def _variables(device: DeviceView) -> Mapping[str, Any]:
    """Returns the variables of the device; raises CelError for a version that cannot be read."""
    attributes = [(name, _value(name, value)) for name, value in device.attributes]
    return {
        "device": _DEVICE,
        "device.driver": device.driver,
        "device.allowMultipleAllocations": device.allow_multiple_allocations,
        "device.attributes": _by_domain(device.driver, attributes),
        "device.capacity": _read_capacity(device.driver, device.capacity),
    }


@lru_cache(maxsize=1024)
def _read_capacity(driver: str, capacity: tuple[tuple[str, str], ...]) -> DefaultMap:
    """Reads a capacity; results are kept, because most devices of a fleet are alike."""
    return _by_domain(driver, [(name, parse_quantity(text)) for name, text in capacity])


def _value(name: str, value: AttributeValue) -> Any:
    if not isinstance(value, Version):
        return value
    try:
        return parse_version(value.text)
    except CelError as error:
        raise CelError(f"attribute {name}: parse semantic version: {error}") from None


@lru_cache(maxsize=1024)
def is_version(text: str) -> bool:
    """Whether a text is a semantic version."""
    try:
        parse_version(text)
    except CelError:
        return False
    return True


def _by_domain(driver: str, pairs: Iterable[tuple[str, Any]]) -> DefaultMap:
    domains = DefaultMap()
    for name, value in sorted(pairs, key=lambda pair: pair[0]):
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, {})[identifier] = value
    return domains
