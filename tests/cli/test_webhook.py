"""`mooring webhook`: what it says when it cannot start."""

from __future__ import annotations

from tests.cli.invoking import Mooring


def test_a_format_that_is_none_is_2(mooring: Mooring) -> None:
    ended = mooring("webhook", "--log-format=xml")

    assert ended.code == 2
    assert "--log-format" in ended.err


def test_no_such_kubeconfig_is_2(mooring: Mooring) -> None:
    ended = mooring("webhook", "--kubeconfig=absent")

    assert ended.code == 2
    assert "absent" in ended.err
