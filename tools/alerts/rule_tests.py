"""Unit tests of alert rules in promtool's own format: series, and which alerts fire when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from .promql import LabelSet, Query, QueryError, SampledSeries, Vector, parse_seconds

_NOTATION = re.compile(r"(_|-?[\d.]+)(?:([+-][\d.]+))?(?:x(\d+))?")
_NAME = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)\s*(?:\{(?P<labels>.*)\})?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_TEMPLATE = re.compile(r"\{\{\s*\$labels\.(\w+)\s*\}\}")

Rule = Mapping[str, Any]


def run_tests(path: Path) -> Iterator[str]:
    """What is wrong, test by test; nothing if all alerts fire as they should."""
    given = yaml.safe_load(path.read_text())
    rules = [
        rule
        for name in given["rule_files"]
        for group in yaml.safe_load((path.parent / name).read_text())["groups"]
        for rule in group["rules"]
    ]
    default = given.get("evaluation_interval", "1m")
    for number, test in enumerate(given["tests"]):
        title = test.get("name", f"tests[{number}]")
        try:
            for problem in _run(rules, test, parse_seconds(default)):
                yield f"{title}: {problem}"
        except QueryError as error:
            yield f"{title}: {error}"


def _run(rules: list[Rule], test: Mapping[str, Any], interval: float) -> Iterator[str]:
    step = parse_seconds(test.get("interval", "1m"))
    series = [_read_series(each["series"], each["values"], step) for each in test["input_series"]]
    for case in test["alert_rule_test"]:
        at, name = parse_seconds(case["eval_time"]), case["alertname"]
        matching = [rule for rule in rules if rule["alert"] == name]
        if not matching:
            yield f"there is no alert {name}"
            continue
        found = [each for rule in matching for each in _find_firing(rule, series, at, interval)]
        expected = [
            (dict(each.get("exp_labels", {})), dict(each.get("exp_annotations", {})))
            for each in case.get("exp_alerts", ())
        ]
        if _sorted(found) != _sorted(expected):
            yield f"{name} at {case['eval_time']}: expected {expected}, got {found}"


def _sorted(alerts: list[tuple[dict[str, str], dict[str, str]]]) -> list[str]:
    return sorted(repr((sorted(one.items()), sorted(other.items()))) for one, other in alerts)


def _find_firing(
    rule: Rule, series: list[SampledSeries], at: float, interval: float
) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Labels and annotations of each alert that fires at a time."""
    held = parse_seconds(rule.get("for", "0s"))
    since: dict[LabelSet, float] = {}
    now = 0.0
    while now <= at:
        active = _evaluate(rule["expr"], series, now)
        since = {labels: since.get(labels, now) for labels in active}
        now += interval
    last = now - interval
    for labels, began in since.items():
        if last - began >= held:
            texts = dict(labels)
            yield (
                {**texts, **rule.get("labels", {})},
                {key: _fill(text, texts) for key, text in rule.get("annotations", {}).items()},
            )


def _evaluate(expression: str, series: list[SampledSeries], now: float) -> Vector:
    value = Query(expression, series, now).evaluate()
    if isinstance(value, float):
        raise QueryError(f"{expression!r} is a number, not an alert")
    return value


def _fill(text: str, labels: Mapping[str, str]) -> str:
    return _TEMPLATE.sub(lambda match: labels.get(match[1], ""), text)


def _read_series(written: str, values: str, step: float) -> SampledSeries:
    match = _NAME.fullmatch(written)
    if match is None:
        raise QueryError(f"{written!r} is no series")
    labels = tuple(sorted(_LABEL.findall(match["labels"] or "")))
    samples = [
        (number * step, value) for number, value in enumerate(_expand(values)) if value is not None
    ]
    return SampledSeries(match["name"], labels, samples)


def _expand(values: str) -> Iterator[float | None]:
    """Numbers as promtool writes them: 1+2x3 is 1 3 5 7, 4x2 is 4 4 4, _ is none."""
    for text in values.split():
        match = _NOTATION.fullmatch(text)
        if match is None:
            raise QueryError(f"{text!r} are no values")
        first, growth, times = match.groups()
        for number in range(int(times or 0) + 1):
            yield None if first == "_" else float(first) + number * float(growth or 0)
