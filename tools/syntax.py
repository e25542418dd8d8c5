"""Mistakes in code as operations on its syntax tree: neither layout nor comments matter.

    drop CODE [of CODE]              a statement, an operand, an element or an argument goes
    never CODE [of CODE]             a condition is never true
    always CODE [of CODE]            a condition is always true
    replace CODE by CODE [of CODE]

What is meant must occur once in a function, class or constant, or once in what follows `of`, which
must occur once itself. It is an expression, a simple statement, or the head of another: `if a:`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_FORM = re.compile(
    r"(?P<operation>drop|never|always|replace) (?P<what>.+?)"
    r"(?: by (?P<instead>.+?))?(?: of (?P<around>.+))?"
)
_INSTEAD = {"never": "False", "always": "True"}


class Unfit(Exception):
    """A change does not fit the code: what it is about is not there, or several times."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is changed in a function, class or constant, by its qualified name."""

    scope: str
    text: str

    def apply(self, source: str) -> str:
        """Returns the changed source, without comments; raises Unfit."""
        tree = ast.parse(source)
        form = _FORM.fullmatch(self.text)
        if form is None:
            raise Unfit(f"{self.text!r} is no operation")
        operation, what, instead, around = form.group("operation", "what", "instead", "around")
        within = _find_scope(tree, self.scope)
        if around is not None:
            within = _find(within, around)
        target = _find(within, what)
        if operation == "drop":
            _drop(tree, target)
        else:
            _put(tree, target, _parse(_INSTEAD.get(operation) or instead or ""))
        return ast.unparse(ast.fix_missing_locations(tree))


def _find_scope(tree: ast.Module, name: str) -> ast.AST:
    """Returns what a qualified name stands for."""
    scope: ast.AST = tree
    for part in name.split("."):
        found = [each for each in ast.iter_child_nodes(scope) if part in _names(each)]
        if len(found) != 1:
            raise Unfit(f"{name} is there {len(found)} times")
        (scope,) = found
    return scope


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [ast.unparse(each) for each in targets]


def _parse(code: str) -> ast.stmt | ast.expr:
    try:
        (statement,) = ast.parse(f"{code} pass" if code.endswith(":") else code).body
    except (SyntaxError, ValueError):
        raise Unfit(f"{code!r} is no statement or expression") from None
    return statement.value if isinstance(statement, ast.Expr) else statement


def _find(within: ast.AST, code: str) -> ast.AST:
    """Returns the only node with some code."""
    wanted = _parse(code)
    alike = (each for each in ast.walk(within) if type(each) is type(wanted))
    found = [each for each in alike if _head(each) == _head(wanted)]
    if len(found) != 1:
        raise Unfit(f"{code!r} is there {len(found)} times")
    return found[0]


def _head(node: ast.AST) -> str:
    """Returns the code of a node, up to its body if it has one."""
    return ast.unparse(node).partition("\n")[0]


def _find_place(tree: ast.AST, node: ast.AST) -> tuple[ast.AST, str, int | None]:
    """Returns the parent of a node, the field in which it is, and the place if that is a list."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is node:
                return parent, field, None
            for at, each in enumerate(value if isinstance(value, list) else ()):
                if each is node:
                    return parent, field, at
    raise Unfit("the whole module")


def _put(tree: ast.AST, node: ast.AST, other: ast.AST) -> None:
    """Puts another node in the place of one."""
    parent, field, at = _find_place(tree, node)
    if isinstance(parent, ast.Expr) and isinstance(other, ast.stmt):
        _put(tree, parent, other)
    elif at is None:
        setattr(parent, field, other)
    else:
        getattr(parent, field)[at] = other


def _drop(tree: ast.AST, node: ast.AST) -> None:
    parent, field, at = _find_place(tree, node)
    if isinstance(node, ast.stmt):
        _put(tree, node, ast.Pass())
    elif isinstance(parent, ast.Expr | ast.keyword | ast.Starred):
        _drop(tree, parent)
    elif isinstance(parent, ast.BinOp):
        _put(tree, parent, parent.right if field == "left" else parent.left)
    elif at is not None:
        rest = getattr(parent, field)
        del rest[at]
        if isinstance(parent, ast.Compare):
            del parent.ops[at]
        if isinstance(parent, ast.BoolOp) and len(rest) == 1:
            _put(tree, parent, rest[0])
    else:
        raise Unfit(f"{ast.unparse(parent)!r} needs {ast.unparse(node)!r}")
