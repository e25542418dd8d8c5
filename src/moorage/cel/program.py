"""Turns the tree of an expression into functions that evaluate it, and counts their steps.

Every part of the tree is one step, whatever is inside a loop is one step per round, and functions
charge for what they read. So the bound holds for loops inside loops and for texts that double.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moorage.cel.functions import FUNCTIONS
from moorage.cel.tree import Call, Comprehension, Constant, ListOf, MapOf, Name, Node, Select, size
from moorage.cel.values import (
    CelError,
    DefaultMap,
    Maybe,
    Meter,
    TypeName,
    is_key,
    look_up,
    look_up_maybe,
    select,
    text_of_key,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TYPES = frozenset(
    ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type")
) | {
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
    "optional_type",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.DRADevice",
    "net.IP",
    "net.CIDR",
}


@dataclass
class Bindings:
    """What an expression may read. A variable whose value is an error fails when it is read."""

    variables: dict[str, Any]
    meter: Meter


Evaluate = Callable[[Bindings], Any]


@dataclass(frozen=True)
class Program:
    evaluate: Evaluate
    #: How many parts the tree has: the steps of an evaluation without loops.
    size: int

    def run(self, variables: Mapping[str, Any], meter: Meter) -> Any:
        """Returns the value of the expression.

        Raises CelError, or TooManyStepsError at the bound.
        """
        meter.charge(self.size)
        return self.evaluate(Bindings(dict(variables), meter))


def build_program(tree: Node) -> Program:
    """Returns the program of a tree; raises CelError for a function that is not supported."""
    return Program(_build(tree), size(tree))


def _build(node: Node) -> Evaluate:
    match node:
        case Constant(value):
            return lambda bindings: value
        case Name(name):
            return _name(name)
        case Select():
            return _select(node)
        case Call():
            return _OPERATORS[node.function](node) if node.function in _OPERATORS else _call(node)
        case ListOf():
            return _list(node)
        case MapOf():
            return _map(node)
        case Comprehension():
            return _comprehension(node)


def _name(name: str) -> Evaluate:
    as_type = TypeName(name) if name in _TYPES else None

    def read(bindings: Bindings) -> Any:
        value = bindings.variables.get(name, as_type)
        if isinstance(value, CelError):
            raise value
        return value

    return read


def _select(node: Select) -> Evaluate:
    operand, field = _build(node.operand), node.field
    if not node.test:
        return lambda bindings: select(operand(bindings), field)

    def has(bindings: Bindings) -> bool:
        container = operand(bindings)
        if not isinstance(container, dict | Maybe):
            raise CelError("no such overload")
        return look_up_maybe(container, field).present

    return has


def _call(node: Call) -> Evaluate:
    overloads = FUNCTIONS.get(node.function)
    spelling = node.function
    if overloads is None:
        raise CelError(f"the function {spelling} is not supported")
    if len(node.arguments) not in map(_arity, overloads):
        raise CelError(
            f"the function {spelling} is not supported with {len(node.arguments)} arguments"
        )
    arguments = tuple(map(_build, node.arguments))

    def call(bindings: Bindings) -> Any:
        values = [argument(bindings) for argument in arguments]
        run = overloads.get(tuple(map(type, values))) or overloads.get(len(values))
        if run is None:
            raise CelError(_no_overload(spelling, values))
        return run(bindings.meter, *values)

    return call


def _no_overload(spelling: str, values: list[Any]) -> str:
    if not spelling[0].isalpha():
        return "no such overload"
    return f"no such overload: {spelling}({', '.join(map(type_name, values))})"


def _arity(key: tuple[type, ...] | int) -> int:
    return key if isinstance(key, int) else len(key)


def _index(node: Call) -> Evaluate:
    container, key = map(_build, node.arguments)

    def index(bindings: Bindings) -> Any:
        found = container(bindings)
        if isinstance(found, Maybe):
            return look_up_maybe(found, key(bindings))
        return look_up(found, key(bindings))

    return index


def _optional_index(node: Call) -> Evaluate:
    container, key = map(_build, node.arguments)
    return lambda bindings: look_up_maybe(container(bindings), key(bindings))


def _logic(decisive: bool) -> Callable[[Call], Evaluate]:
    """`&&` and `||`: one decisive side settles it, even if the other side is an error."""

    def build(node: Call) -> Evaluate:
        sides = tuple(map(_build, node.arguments))

        def decide(bindings: Bindings) -> bool:
            error = None
            for side in sides:
                try:
                    if _truth(side(bindings)) is decisive:
                        return decisive
                except CelError as failure:
                    error = error or failure
            if error:
                raise error
            return not decisive

        return decide

    return build


def _conditional(node: Call) -> Evaluate:
    condition, positive, negative = map(_build, node.arguments)
    return lambda bindings: (
        positive(bindings) if _truth(condition(bindings)) else negative(bindings)
    )


def _not_strictly_false(node: Call) -> Evaluate:
    (value,) = map(_build, node.arguments)
    return lambda bindings: _is_not_false(value, bindings)


def _is_not_false(value: Evaluate, bindings: Bindings) -> bool:
    try:
        return value(bindings) is not False
    except CelError:
        return True


def _or_else(wrapped: bool) -> Callable[[Call], Evaluate]:
    """`orValue` and `or`: the alternative is evaluated only where it is needed."""

    def build(node: Call) -> Evaluate:
        first, second = map(_build, node.arguments)

        def choose(bindings: Bindings) -> Any:
            value = first(bindings)
            if _optional(value).present:
                return value if wrapped else value.value
            return second(bindings)

        return choose

    return build


_OPERATORS: dict[str, Callable[[Call], Evaluate]] = {
    "_&&_": _logic(decisive=False),
    "_||_": _logic(decisive=True),
    "_?_:_": _conditional,
    "@not_strictly_false": _not_strictly_false,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_index,
    "orValue": _or_else(wrapped=False),
    "or": _or_else(wrapped=True),
}


def _optional(value: Any) -> Maybe:
    if not isinstance(value, Maybe):
        raise CelError("no such overload")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


def _list(node: ListOf) -> Evaluate:
    elements = tuple(map(_build, node.elements))
    if not node.optional:
        return lambda bindings: [element(bindings) for element in elements]

    def build(bindings: Bindings) -> list[Any]:
        values: list[Any] = []
        for place, element in enumerate(elements):
            value = element(bindings)
            if place not in node.optional:
                values.append(value)
            elif _optional(value).present:
                values.append(value.value)
        return values

    return build


def _map(node: MapOf) -> Evaluate:
    entries = tuple((_build(key), _build(value), maybe) for key, value, maybe in node.entries)

    def build(bindings: Bindings) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for key_of, value_of, maybe in entries:
            key, value = key_of(bindings), value_of(bindings)
            if maybe and not _optional(value).present:
                continue
            if not is_key(key):
                raise CelError(f"unsupported key: {text_of_key(key)}")
            if key in built:
                raise CelError(f"Failed with repeated key: {text_of_key(key)}")
            built[key] = value.value if maybe else value
        return built

    return build


def _comprehension(node: Comprehension) -> Evaluate:
    items, start, result = _build(node.items), _build(node.start), _build(node.result)
    condition, step = _build(node.condition), _build(node.step)
    steps_per_round = 1 + size(node.condition) + size(node.step)

    def evaluate(bindings: Bindings) -> Any:
        inner = Bindings(dict(bindings.variables), bindings.meter)
        rounds = _rounds(items(bindings), bool(node.second_item))
        inner.variables[node.result_name] = _start_of(_try(start, bindings))
        for first, second in rounds:
            bindings.meter.charge(steps_per_round)
            inner.variables[node.item] = first
            if node.second_item:
                inner.variables[node.second_item] = second
            if _try(condition, inner) is False:
                break
            inner.variables[node.result_name] = _try(step, inner)
        return result(inner)

    return evaluate


def _try(evaluate: Evaluate, bindings: Bindings) -> Any:
    """Returns the value or the error, which counts only when it is read."""
    try:
        return evaluate(bindings)
    except CelError as error:
        return error


def _start_of(value: Any) -> Any:
    """Returns the start value; a copy of an empty map has no default, as in Kubernetes."""
    return {} if isinstance(value, DefaultMap) and not value else value


def _rounds(items: Any, two: bool) -> Iterator[tuple[Any, Any]]:
    """First and second variable of every round."""
    if isinstance(items, dict):
        return iter(items.items())
    if isinstance(items, list):
        return enumerate(items) if two else ((item, None) for item in items)
    raise CelError("got an iterable of another type than list and map")
