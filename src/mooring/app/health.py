"""Health checks, told as Kubernetes' components tell them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from .logs import named

LOG = named("mooring.health")

#: None while all is well, else what is wrong.
Check = Callable[[], str | None]


def ping() -> None:
    """The check of those who have none: that somebody answers."""


@dataclass(frozen=True, slots=True)
class Health:
    """What came of some checks: the text, and whether all is well."""

    ok: bool
    text: str


class HealthChecks:
    """The checks behind a path such as /readyz, by name, in order."""

    def __init__(self, name: str, checks: Mapping[str, Check]) -> None:
        self._name = name
        self._checks = dict(checks) or {"ping": ping}

    def __contains__(self, check: str) -> bool:
        return check in self._checks

    def one(self, check: str) -> Health:
        """One check alone, which tells what is wrong."""
        wrong = self._wrong(check)
        return Health(wrong is None, "ok" if wrong is None else f"internal server error: {wrong}\n")

    def all(self, *, verbose: bool = False, exclude: Collection[str] = ()) -> Health:
        """All checks. What is wrong is only logged: whoever comes may read this."""
        lines = []
        failed = {}
        for check in self._checks:
            wrong = None if check in exclude else self._wrong(check)
            if wrong is not None:
                failed[check] = wrong
                lines.append(f"[-]{check} failed: reason withheld\n")
            else:
                lines.append(
                    f"[+]{check} excluded: ok\n" if check in exclude else f"[+]{check} ok\n"
                )
        unknown = ",".join(f'"{each}"' for each in sorted({*exclude} - {*self._checks}))
        if unknown:
            lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}\n")
        if failed:
            LOG.warning("Health check failed", path=f"/{self._name}", **failed)
            return Health(False, f"{''.join(lines)}{self._name} check failed\n")
        return Health(True, f"{''.join(lines)}{self._name} check passed\n" if verbose else "ok")

    def _wrong(self, check: str) -> str | None:
        try:
            return self._checks[check]()
        except Exception as error:  # noqa: BLE001 - a check that breaks is a check that fails
            return f"{type(error).__name__}: {error}"
