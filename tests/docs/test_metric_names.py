"""Every metric that a page names is one of the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moorage.app.metric_table import ABSENT, METRICS
from moorage.cluster import Cluster
from moorage.plugins.exclusive_holders import measure_holders
from tests.docs.pages import DOCS

_NAMES = {metric.name for metric in METRICS} | {*ABSENT}
# What plugins show.
_NAMES |= {each.metric.name for each in measure_holders(Cluster().nodes, ()) if each is not None}
# A project of Kubernetes, and the module of the plugin that a page writes.
_OTHERS = {"scheduler_perf", "moorage_policies", "moorage_maintenance"}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_metrics_of_a_page_exist(page: Path) -> None:
    named = set(re.findall(r"\b(?:moorage|scheduler)_[a-z_]+[a-z]", page.read_text()))
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in named} - _NAMES <= _OTHERS
