"""How hollow nodes behave."""

from __future__ import annotations

from dataclasses import dataclass

#: A pod that is to run for another time, or to end with another exit code, says so.
RUN_SECONDS = "hollow.mooring.dev/run-seconds"
EXIT_CODE = "hollow.mooring.dev/exit-code"

#: On a node: the gate of the coexist policy of its kubelet, "true" or "false".
COEXIST_GATE = "hollow.mooring.dev/coexist-policy"

#: On a node: "stopped" stops its kubelet. The node falls silent; what runs there runs on.
KUBELET = "hollow.mooring.dev/kubelet"


@dataclass(frozen=True, slots=True, kw_only=True)
class HollowSettings:
    """How long things take on hollow nodes, and what their kubelets know."""

    #: From being bound to running.
    start_seconds: float = 0.0
    #: How long pods run that are not restarted; those that are run for ever.
    run_seconds: float = 10.0
    #: From being told to stop to having stopped, if the grace period allows as much.
    stop_seconds: float = 1.0
    #: The gate of the coexist policy, on nodes that do not say otherwise.
    coexist: bool = True
    #: Leases are renewed as often as real kubelets do it.
    lease_seconds: float = 10.0
    #: But not more of them a second than this: with many nodes each has longer.
    most_renewals: float = 100.0
