"""Runtime classes: what running a pod costs beside its containers, and on which nodes it runs."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.api.column import NAME, age_column, field_column
from mooring.embedded.api.decoding import part
from mooring.embedded.api.kind import KindRules, ServedKind, make_built_in
from mooring.embedded.request_refusals import Fault, forbidden, invalid_value, required
from mooring.embedded.store.object_store import ObjectStore
from mooring.embedded.store.table import Json

from .pod_amounts import read_amounts
from .pod_scheduling import toleration_faults
from .pod_spec import amount_faults

_TABLE = "runtimeclasses.node.k8s.io"


class RuntimeClassRules(KindRules):
    def faults(self, item: Json) -> Iterator[Fault]:
        if not item.get("handler"):
            yield required("handler")
        fixed = part(part(item, "overhead"), "podFixed")
        yield from amount_faults("overhead.podFixed", fixed, named=False)
        tolerations = part(item, "scheduling").get("tolerations") or []
        yield from toleration_faults("scheduling.tolerations", tolerations)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if item.get("handler") != old.get("handler"):
            yield invalid_value("handler", item.get("handler"), "field is immutable")


def apply_runtime_class(store: ObjectStore, item: Json) -> None:
    """Gives a new pod the overhead, node selector and tolerations of its runtime class."""
    spec, wanted = item["spec"], item["spec"].get("runtimeClassName")
    found = store.table(_TABLE).entries.get(wanted) if wanted else None
    if wanted and found is None:
        raise _reject(item, f'RuntimeClass "{wanted}" not found')
    chosen = found.object if found is not None else {}
    fixed = part(part(chosen, "overhead"), "podFixed")
    given = part(spec, "overhead")
    if given and not fixed:
        raise _reject(item, "Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if given and read_amounts(given) != read_amounts(fixed):
        raise _reject(item, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if fixed:
        spec["overhead"] = dict(fixed)
    _place(item, part(chosen, "scheduling"))


def _place(item: Json, scheduling: Json) -> None:
    spec = item["spec"]
    own, theirs = part(spec, "nodeSelector"), part(scheduling, "nodeSelector")
    for key, value in theirs.items():
        if own.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
            raise forbidden("pods", item["metadata"]["name"], why)
    if theirs:
        spec["nodeSelector"] = {**own, **theirs}
    tolerations = spec.get("tolerations") or []
    added = [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _reject(item: Json, why: str) -> Exception:
    return forbidden("pods", item["metadata"]["name"], f"pod rejected: {why}")


def runtime_class_kinds() -> Iterator[ServedKind]:
    """Yields runtime classes."""
    yield make_built_in(
        "node.k8s.io",
        "node.v1",
        "RuntimeClass",
        "runtimeclasses",
        RuntimeClassRules(),
        namespaced=False,
        columns=(NAME, field_column("Handler", "handler", ""), age_column()),
    )
