"""Every recorded case is answered as Kubernetes answers it, or refused by the function's name."""

from __future__ import annotations

from collections import Counter

from moorage.cel import compile_device_expression
from tests.cel.recorded_cases import ask, read_cases, view_of

#: What Moorage refuses although Kubernetes knows it, and the function that the message must name.
REFUSED = {
    'url("https://x.org/p").getHost() == "x.org"': "the function url is not supported",
    'isURL("x")': "the function isURL is not supported",
    'format.named("dns1123Label").hasValue()': "the function format is not supported",
    'format.dns1123Label().validate("A").hasValue()': "the function format is not supported",
}


def test_answers() -> None:
    counts: Counter[str] = Counter()
    for case in read_cases():
        expression = case["expr"]
        selector = compile_device_expression(expression)
        if expression in REFUSED:
            assert selector.problem.startswith(REFUSED[expression])
            counts["refused"] += 1
        elif "compileError" in case:
            assert selector.problem, expression
            counts["compile errors"] += 1
        else:
            assert not selector.problem, expression
            counts["answers"] += "result" in case
            counts["errors"] += "error" in case
            assert ask(selector, view_of(case)) == case.get("result", case.get("error")), case

    assert counts == {"answers": 614, "errors": 294, "compile errors": 80, "refused": 16}
