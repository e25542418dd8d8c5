"""Ways into the cluster and who may do what: completed, though nothing acts on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mooring.embedded.errors import Fault, invalid_value

from .plain import Json, Rules, WithStatus, fill

_NO_NAMES = (".", "..")
_NOT_IN_NAMES = ("/", "%")


class Ingresses(WithStatus):
    first_status: ClassVar = {"loadBalancer": {}}


class NetworkPolicies(Rules):
    generation = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(spec, policyTypes=["Ingress", *(["Egress"] if spec.get("egress") else [])])


class Access(Rules):
    """Roles and bindings may have names such as system:node."""

    def name_faults(self, name: str) -> Iterator[Fault]:
        if name in _NO_NAMES:
            yield invalid_value("metadata.name", name, f"may not be '{name}'")
        for part in _NOT_IN_NAMES:
            if part in name:
                yield invalid_value("metadata.name", name, f"may not contain '{part}'")
