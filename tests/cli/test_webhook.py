"""`moorage webhook`: what it says when it cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.app import coexist_webhook
from moorage.app.coexist_webhook import WebhookSettings
from tests.cli.invoking import Moorage

_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: x, context: {cluster: c, user: ""}}]
current-context: x
"""


def test_a_format_that_is_none_is_2(moorage: Moorage) -> None:
    ended = moorage("webhook", "--log-format=xml")

    assert ended.code == 2
    assert "--log-format" in ended.err


def test_no_such_kubeconfig_is_2(moorage: Moorage) -> None:
    ended = moorage("webhook", "--kubeconfig=absent")

    assert ended.code == 2
    assert "absent" in ended.err


@pytest.mark.parametrize(("gates", "enabled"), [("", True), ("CoexistPolicy=false", False)])
def test_the_gate_switches_the_guard(
    gates: str, enabled: bool, moorage: Moorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(_KUBECONFIG)
    seen: list[WebhookSettings] = []

    async def guard(connection: object, settings: WebhookSettings) -> None:
        seen.append(settings)

    monkeypatch.setattr(coexist_webhook, "guard_cluster", guard)
    ended = moorage("webhook", f"--kubeconfig={tmp_path / 'config'}", f"--feature-gates={gates}")

    assert ended.code == 0, ended.err
    assert [each.enabled for each in seen] == [enabled]
