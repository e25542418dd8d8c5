"""DynamicResources."""

from __future__ import annotations

from mooring.framework.plugin import UNSIGNABLE
from mooring.framework.status import unresolvable
from mooring.plugins.dynamic_resources.dynamic_resources import DynamicResources
from tests.builders import (
    EMPTY,
    cluster,
    pod,
)

PLUGIN = DynamicResources()
CLAIMING = pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu-1"}]})


def test_a_pod_with_claims_is_refused() -> None:
    assert PLUGIN.pre_filter(CLAIMING, cluster().nodes) == unresolvable(
        "pod uses resource claims, which Mooring does not support yet"
    )


def test_any_other_pod_is_skipped() -> None:
    assert PLUGIN.pre_filter(pod(), cluster().nodes) is None


def test_claims_cannot_be_signed() -> None:
    assert PLUGIN.sign(CLAIMING, EMPTY) is UNSIGNABLE
    assert PLUGIN.sign(pod(), EMPTY) == PLUGIN.sign(pod("other"), EMPTY)
