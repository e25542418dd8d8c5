"""Flags of leader election: how long leases last is a matter of how busy a machine may be."""

from __future__ import annotations


def _last(lease: str, deadline: str, retry: str = "500ms") -> tuple[str, ...]:
    return (
        f"--leader-elect-lease-duration={lease}",
        f"--leader-elect-renew-deadline={deadline}",
        f"--leader-elect-retry-period={retry}",
        "--leader-elect-resource-name=moorage",
        "--leader-elect-resource-namespace=moorage-system",
    )


#: No renewal comes too late for it, and no test waits until it runs out.
LONG_LEASE = _last("30m", "29m")
#: For tests in which one takes over. A renewal takes milliseconds, on a busy machine seconds.
SHORT_LEASE = _last("30s", "25s")
#: As schedulers have it by default, for the soak test.
USUAL_LEASE = _last("15s", "10s", "2s")
