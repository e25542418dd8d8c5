"""Health checks as Kubernetes' components tell them."""

from __future__ import annotations

import pytest

from moorage.app.endpoints import Check, HealthChecks


def fails() -> str:
    return "the watch is broken"


def breaks() -> str | None:
    raise OSError("disk")


def fine() -> None:
    pass


@pytest.mark.parametrize(
    ("checks", "given", "ok", "text"),
    [
        pytest.param({}, {}, True, "ok", id="nothing to check"),
        pytest.param(
            {}, {"verbose": True}, True, "[+]ping ok\nreadyz check passed\n", id="somebody is there"
        ),
        pytest.param(
            {"shutdown": fine, "informer-sync": fails},
            {},
            False,
            "[+]shutdown ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n",
            id="a failure is told at length, without its reason",
        ),
        pytest.param(
            {"leaderElection": breaks},
            {},
            False,
            "[-]leaderElection failed: reason withheld\nreadyz check failed\n",
            id="a check that breaks fails",
        ),
        pytest.param(
            {"shutdown": fine, "informer-sync": fails},
            {"verbose": True, "exclude": ["informer-sync", "b", "a"]},
            True,
            "[+]shutdown ok\n[+]informer-sync excluded: ok\n"
            'warn: some health checks cannot be excluded: no matches for "a","b"\n'
            "readyz check passed\n",
            id="some may be left out",
        ),
    ],
)
def test_all(checks: dict[str, Check], given: dict[str, bool], ok: bool, text: str) -> None:
    found = HealthChecks("readyz", checks).all(**given)  # type: ignore[arg-type]

    assert (found.ok, found.text) == (ok, text)


def test_one_check_tells_what_is_wrong() -> None:
    checks = HealthChecks("readyz", {"good": fine, "bad": fails, "broken": breaks})

    assert checks.one("good").text == "ok"
    assert checks.one("bad").text == "internal server error: the watch is broken\n"
    assert checks.one("broken").text == "internal server error: OSError: disk\n"
    assert "other" not in checks
