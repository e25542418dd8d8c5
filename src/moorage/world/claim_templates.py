"""Claims of devices, as their controller makes and frees them: one per pod and template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from moorage.documents.conversion import to_struct
from moorage.objects.meta import ObjectMeta, OwnerReference, Wire
from moorage.objects.pod import Pod
from moorage.objects.pod_status import PodResourceClaimStatus
from moorage.objects.resource_claim import ClaimSpec, ResourceClaim, share_claim_spec


class _TemplateSpec(Wire, frozen=True):
    spec: ClaimSpec = ClaimSpec()


class ResourceClaimTemplate(Wire, frozen=True):
    """The template of claims that are made for pods."""

    metadata: ObjectMeta
    spec: _TemplateSpec = _TemplateSpec()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace or 'default'}/{self.name}"


def read_claim_template(raw: Mapping[str, Any]) -> ResourceClaimTemplate:
    """Reads a template that has its defaults. Raises DecodeError."""
    return to_struct(ResourceClaimTemplate, raw)


class ClaimTemplates:
    """All templates, by namespace and name."""

    def __init__(self, known: ClaimTemplates | None = None) -> None:
        self._specs: dict[str, ClaimSpec] = {} if known is None else dict(known._specs)

    def add(self, template: ResourceClaimTemplate) -> None:
        self._specs[template.key] = share_claim_spec(template.spec.spec)

    def make_claims(self, pod: Pod) -> tuple[Pod, tuple[ResourceClaim, ...]]:
        """Makes the claims of a pod; returns the pod with their names, and the claims.

        If a template is missing, its claim is not made, and the pod waits for it.
        """
        statuses = list(pod.status.resource_claim_statuses or ())
        made: list[ResourceClaim] = []
        for name, template in _missing(pod):
            spec = self._specs.get(f"{pod.namespace}/{template}")
            if spec is not None:
                made.append(_make_claim(pod, name, spec))
                statuses.append(
                    PodResourceClaimStatus(name=name, resource_claim_name=made[-1].name)
                )
        if not made:
            return pod, ()
        status = replace(pod.status, resource_claim_statuses=tuple(statuses))
        return replace(pod, status=status), tuple(made)


def _missing(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yields the references of a pod without a claim yet, with their templates."""
    known = {each.name for each in pod.status.resource_claim_statuses or ()}
    for each in pod.spec.resource_claims or ():
        if each.resource_claim_template_name is not None and each.name not in known:
            yield each.name, each.resource_claim_template_name


def _make_claim(pod: Pod, reference: str, spec: ClaimSpec) -> ResourceClaim:
    return ResourceClaim(
        namespace=pod.namespace,
        name=f"{pod.name}-{reference}",
        uid=f"{pod.uid}/{reference}",
        spec=spec,
        owner=OwnerReference(
            api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
        ),
    )


def copy_claims(
    pod: Pod, copy: Pod, known: Mapping[str, ResourceClaim]
) -> tuple[Pod, tuple[ResourceClaim, ...]]:
    """Returns a copy of a pod with its own copies of the claims that were made for it."""
    statuses: list[PodResourceClaimStatus] = []
    made: list[ResourceClaim] = []
    for each in pod.status.resource_claim_statuses or ():
        claim = known.get(f"{pod.namespace}/{each.resource_claim_name}")
        if claim is not None and claim.is_made_for(pod.uid):
            made.append(_make_claim(copy, each.name, claim.spec))
            each = replace(each, resource_claim_name=made[-1].name)
        statuses.append(each)
    if not made:
        return copy, ()
    status = replace(copy.status, resource_claim_statuses=tuple(statuses))
    return replace(copy, status=status), tuple(made)


def without_user(claim: ResourceClaim, pod: Pod) -> ResourceClaim | None:
    """Returns the claim after the pod is gone; None if it goes with the pod."""
    if claim.is_made_for(pod.uid):
        return None
    left = tuple(user for user in claim.reserved_for if user.uid != pod.uid)
    if len(left) == len(claim.reserved_for):
        return claim
    return replace(claim, reserved_for=left) if left else claim.deallocated()
