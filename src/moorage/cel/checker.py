"""Parses and checks expressions, and matches regular expressions, by cel-expr-python.

No other module knows the library. It is Google's own implementation of CEL, and brings the grammar,
the macros, the overloads and the types. Evaluation stays out of it: it has no bound on the work, no
values of our own types, and it leaks memory whenever it calls a Python function.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files

from cel_expr_python import cel

from moorage.cel.values import CelError

#: Functions that Kubernetes has in its environment and Moorage has not.
NOT_SUPPORTED = frozenset(
    ("url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery")
) | {"format", "named", "validate", "strings", "quote"}

_UNDECLARED = re.compile(r"undeclared reference to '([\w.]+)'")
_ADDRESS_OF_ERROR = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_DEVICE = {
    "device": cel.Type.AbstractType("kubernetes.DRADevice"),
    "device.driver": cel.Type.STRING,
    "device.allowMultipleAllocations": cel.Type.BOOL,
    "device.attributes": cel.Type.Map(cel.Type.STRING, cel.Type.Map(cel.Type.STRING, cel.Type.DYN)),
    "device.capacity": cel.Type.Map(
        cel.Type.STRING,
        cel.Type.Map(cel.Type.STRING, cel.Type.AbstractType("kubernetes.Quantity")),
    ),
}


def check(expression: str) -> tuple[bytes, str]:
    """Returns the expression as a message `cel.expr.CheckedExpr`, and the name of its type.

    Raises CelError for an expression that the environment of Kubernetes refuses.
    """
    try:
        checked = _environment().compile(expression)
    except RuntimeError as error:
        raise CelError(_explain(str(error))) from None
    return checked.serialize(), checked.return_type().name().lower()


def parse(expression: str) -> bytes:
    """Returns the expression as the message `cel.expr.ParsedExpr`, not checked."""
    try:
        return _environment().compile(expression, disable_check=True).serialize()
    except RuntimeError as error:
        raise CelError(_explain(str(error))) from None


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern occurs in the text. RE2 matches in linear time."""
    return bool(_ask("text.matches(pattern)", text, pattern))


def find(text: str, pattern: str) -> str:
    """Returns the first occurrence of the pattern, or nothing."""
    return str(_ask('regex.extract(text, pattern).orValue("")', text, _without_captures(pattern)))


def find_all(text: str, pattern: str) -> list[str]:
    """Returns all occurrences of a pattern that does not match the empty text."""
    if matches("", f"^(?:{pattern})$"):
        raise CelError("findAll: a pattern that matches the empty text is not supported")
    found = _ask("regex.extractAll(text, pattern)", text, _without_captures(pattern))
    return [str(each) for each in found] if isinstance(found, list) else []


@cache
def _environment() -> cel.Env:
    text = files("moorage.cel").joinpath("environment.yaml").read_text(encoding="utf-8")
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(text), variables=_DEVICE)


@cache
def _patterns() -> cel.Env:
    config = cel.NewEnvConfigFromYaml("extensions: [{name: regex}, {name: optional}]")
    variables = {"text": cel.Type.STRING, "pattern": cel.Type.STRING}
    return cel.NewEnv(config=config, variables=variables)


@lru_cache(maxsize=8)
def _question(expression: str) -> cel.Expression:
    return _patterns().compile(expression)


def _ask(expression: str, text: str, pattern: str) -> object:
    try:
        answer = _question(expression).eval(data={"text": text, "pattern": pattern})
    except (RuntimeError, TypeError):
        raise CelError("the text or the pattern is not valid Unicode") from None
    if answer.type() == cel.Type.ERROR:
        raise CelError(_ADDRESS_OF_ERROR.sub("", str(answer.value())))
    return answer.plain_value()


def _without_captures(pattern: str) -> str:
    """Returns the pattern with non-capturing groups: the library would return a captured one."""
    if re.search(r"\\Q|\[[^\]]*\(|\(\?P?<", pattern):
        raise CelError("find: this kind of group is not supported")
    return re.sub(r"(\\.)|\((?!\?)", lambda match: match[1] or "(?:", pattern)


def _explain(text: str) -> str:
    text = _ADDRESS_OF_ERROR.sub("", text)
    unknown = [name for name in _UNDECLARED.findall(text) if name in NOT_SUPPORTED]
    if unknown:
        return f"the function {unknown[0]} is not supported: {text}"
    return f"compilation failed: {text}"
