"""Whether pods may use the claims of devices that they refer to, as their kubelets check it."""

from __future__ import annotations

from mooring.embedded.api.object_api import ObjectApi
from mooring.embedded.store.table import Json

_CLAIMS = "resourceclaims.resource.k8s.io"


class ClaimRights:
    """Asks the claims of pods who may use them."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._kind = api.kinds[_CLAIMS]

    def refusal(self, pod: Json) -> str:
        """Returns why a pod may not use its claims; empty if it may."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        names = {
            each["name"]: each.get("resourceClaimName", "")
            for each in status.get("resourceClaimStatuses") or ()
        }
        for reference in pod["spec"].get("resourceClaims") or ():
            name = reference.get("resourceClaimName")
            if name is None:
                name = names.get(reference["name"])
            if name is None:
                whole = f"{metadata['namespace']}/{metadata['name']}"
                return f'pod "{whole}": ResourceClaim not created yet'
            # A reference may be left without a claim on purpose.
            problem = self._problem(metadata, name) if name else ""
            if problem:
                return problem
        extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
        return self._problem(metadata, extended) if extended else ""

    def _problem(self, pod: Json, name: str) -> str:
        entry = self._api.find(self._kind, pod["namespace"], name)
        if entry is None:
            return (
                f"failed to fetch ResourceClaim {name} referenced by pod {pod['name']}: "
                f'{_CLAIMS} "{name}" not found'
            )
        claim = entry.object
        users = (claim.get("status") or {}).get("reservedFor") or ()
        if any(each.get("uid") == pod["uid"] for each in users):
            return ""
        return (
            f"pod {pod['name']} ({pod['uid']}) is not allowed to use ResourceClaim {name} "
            f"({claim['metadata']['uid']})"
        )
