"""Finds the numbers that sizes and counts are compared with: each is a knob that somebody set."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

#: The numbers that modules give names in capitals: by name, each with its module.
Constants = dict[str, dict[str, float]]

# These are no thresholds: they say "none", "any" or "the last".
_USUAL = (0, 1, -1)

_PLAIN = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
_SUMS = ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv
_COMPARING = ("min", "max", "minimum", "maximum")


def find_constants(nodes: Mapping[str, Sequence[ast.AST]]) -> Constants:
    """Returns the named numbers of modules and of their classes, but for those of enums."""
    found: Constants = {}
    for module, every in nodes.items():
        for scope in every:
            for name, node in _assigned(scope):
                value = _evaluate(node) if name.upper() == name else None
                if value is not None:
                    found.setdefault(name, {})[module] = value
    return found


def find_thresholds(module: str, nodes: Sequence[ast.AST], constants: Constants) -> Iterator[str]:
    """Yields the numbers other than 0, 1 and -1 that something in a module is compared with.

    A constant is also yielded if it is handed to a function, which compares, and may come again.
    """
    homes = {
        alias.name: node.module or ""
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in _operands(nodes):
        value = _evaluate(node)
        if value is not None and value not in _USUAL:
            yield f"{module}:{node.lineno} {value}"
        first, name = (ast.unparse(node).split(".")[at] for at in (0, -1))
        for home, known in constants.get(name, {}).items():
            # A relative import gives the end of the module's name.
            is_meant = home == module or (homes.get(first) and home.endswith(homes[first]))
            if is_meant and known not in _USUAL:
                yield f"{home}.{name} {known}"


def _assigned(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yields what a module, or a class that is no enum, gives a name."""
    if not isinstance(scope, ast.Module | ast.ClassDef) or _is_enum(scope):
        return
    for each in scope.body:
        if isinstance(each, ast.AnnAssign) and each.value is not None:
            yield ast.unparse(each.target), each.value
        elif isinstance(each, ast.Assign):
            target, value = each.targets[0], each.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                yield from zip(map(ast.unparse, target.elts), value.elts, strict=False)
            else:
                yield ast.unparse(target), value


def _is_enum(scope: ast.Module | ast.ClassDef) -> bool:
    bases = scope.bases if isinstance(scope, ast.ClassDef) else []
    return any(ast.unparse(each).endswith(("Enum", "Flag")) for each in bases)


def _evaluate(node: ast.expr) -> float | None:
    """Returns the value of an expression of plain numbers; None for any other."""
    if not all(isinstance(each, _PLAIN) for each in ast.walk(node)):
        return None
    value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
    return value if type(value) in (int, float) else None


def _operands(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Yields what is compared, and the names that are handed to functions."""
    for node in nodes:
        if isinstance(node, ast.Compare):
            yield from _split((node.left, *node.comparators))
        elif isinstance(node, ast.Call):
            handed = (*node.args, *(each.value for each in node.keywords))
            if ast.unparse(node.func).rpartition(".")[2] in _COMPARING:
                yield from _split(handed)
            yield from _names(handed)
        elif isinstance(node, ast.arguments):
            yield from _names((*node.defaults, *node.kw_defaults))
        elif isinstance(node, ast.AnnAssign):
            yield from _names((node.value,))


def _split(nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """Yields the parts of sums and products, such as `2 * _MOST`."""
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, _SUMS) and _evaluate(node) is None:
            yield from _split((node.left, node.right))
        else:
            yield node


def _names(nodes: Iterable[ast.expr | None]) -> Iterator[ast.expr]:
    return (each for each in nodes if isinstance(each, ast.Name | ast.Attribute))
