"""What a process says of itself at /statusz and /flagz."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from moorage.app.endpoints import make_pages
from moorage.config import FeatureGates

START = datetime(2026, 3, 7, 4, 5, 6, tzinfo=UTC)


def test_statusz_says_since_when_it_runs_and_what_it_serves() -> None:
    moments = iter((START, START + timedelta(hours=25, minutes=1, seconds=9)))

    text = make_pages(FeatureGates(), {}, lambda: next(moments))["/statusz"]()

    lines = text.splitlines()
    assert lines[1] == "moorage statusz"
    assert "Started: Sat Mar  7 04:05:06 UTC 2026" in lines
    assert "Up: 25 hr 01 min 09 sec" in lines
    assert "Emulation version: 1.36" in lines
    assert lines[-1].startswith("Paths: /configz /flagz /healthz")


def test_flagz_lists_every_flag_by_name() -> None:
    text = make_pages(FeatureGates(), {"secure-port": 10259, "config": ""})["/flagz"]()

    assert text.splitlines()[1] == "moorage flags"
    assert text.splitlines()[-2:] == ["config=", "secure-port=10259"]


def test_a_page_whose_gate_is_off_is_not_served() -> None:
    gates = FeatureGates.from_text("ComponentStatusz=false,ComponentFlagz=true")

    assert list(make_pages(gates, {})) == ["/flagz"]
