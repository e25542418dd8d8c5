"""The alert rules, run on series; and the checker that runs them where promtool is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import needs_program
from tools.alerts.__main__ import RULES, TESTS, main
from tools.alerts.promql import Query, QueryError, SampledSeries
from tools.alerts.rule_tests import run_tests


def test_the_alerts_fire_when_they_should(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0, capsys.readouterr().out


def test_every_alert_is_seen_to_fire_and_not_to_fire() -> None:
    rules = yaml.safe_load(RULES.read_text())["groups"]
    alerts = {rule["alert"] for group in rules for rule in group["rules"]}
    cases = [
        case
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
    ]

    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


@needs_program("promtool")
def test_promtool_says_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert capfd.readouterr().out.count("SUCCESS") == 2


@needs_program("promtool")
@pytest.mark.parametrize(
    ("old", "new"),
    [("sum by (profile) (rate(", "sum by profile (rate("), ("> 0.1\n", "> 1.5\n")],
    ids=["a rule that is no rule", "a threshold beyond the buckets"],
)
def test_promtool_sees_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    rules, tests = tmp_path / RULES.name, tmp_path / TESTS.name
    rules.write_text(RULES.read_text().replace(old, new))
    tests.write_text(TESTS.read_text())
    monkeypatch.setattr("tools.alerts.__main__.RULES", rules)
    monkeypatch.setattr("tools.alerts.__main__.TESTS", tests)
    monkeypatch.setattr("tools.alerts.__main__.run_tests", lambda _: ())

    assert main() == 1


def test_it_is_said_that_promtool_was_not_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    assert main() == 0
    assert "promtool is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("> 0.1\n", "> 1.5\n", id="a threshold beyond the buckets"),
        pytest.param("for: 30m", "for: 40m", id="a longer wait"),
        pytest.param('result="error"', 'result="failed"', id="another label"),
        pytest.param("sum by (profile) (rate(", "sum (rate(", id="another grouping"),
    ],
)
def test_a_mistake_in_a_rule_is_seen(tmp_path: Path, old: str, new: str) -> None:
    text = RULES.read_text()
    assert old in text
    (tmp_path / "alerts.yaml").write_text(text.replace(old, new))
    (tmp_path / TESTS.name).write_text(TESTS.read_text())

    assert list(run_tests(tmp_path / TESTS.name))


# The checker: results as Prometheus gives them


def series(name: str, *values: float, **labels: str) -> SampledSeries:
    samples = [(60.0 * at, value) for at, value in enumerate(values)]
    return SampledSeries(name, tuple(sorted(labels.items())), samples)


KNOWN = (
    series("up", 1, 1, 0, job="a"),
    series("up", 1, 1, 1, job="b"),
    series("hits_total", 0, 60, 120, job="a"),
    # It was restarted.
    series("hits_total", 60, 120, 60, job="b"),
    series("size_bucket", 5, 5, 5, le="1"),
    series("size_bucket", 10, 10, 10, le="2"),
    series("size_bucket", 10, 10, 10, le="+Inf"),
)
A, B = (("job", "a"),), (("job", "b"),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("up", {A: 0.0, B: 1.0}),
        ('up{job="b"}', {B: 1.0}),
        ("up == 1", {B: 1.0}),
        ("sum(up)", {(): 1.0}),
        ("sum by (job) (up)", {A: 0.0, B: 1.0}),
        ("absent(up)", {}),
        ("absent(gone)", {(): 1.0}),
        ("rate(hits_total[3m])", {A: 120 / 180, B: 120 * 180 / 120 / 180}),
        ("up / 2 + 1", {A: 1.0, B: 1.5}),
        ("hits_total / up > 0", {A: float("inf"), B: 60.0}),
        ("hits_total > 100 and up < 1", {A: 120.0}),
        ("histogram_quantile(0.75, size_bucket)", {(): 1.5}),
        ("histogram_quantile(1, size_bucket)", {(): 2.0}),
        ("2 * 3 - 1", 5.0),
    ],
)
def test_queries(text: str, value: Any) -> None:
    found = Query(text, KNOWN, 120.0).evaluate()

    assert found == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["up >", "up up", "delta(up[5m])", "up > up", "sum(1)", 'up{job=~"a"}', "§"]
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        Query(text, KNOWN, 120.0).evaluate()
