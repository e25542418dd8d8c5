"""The sets of a deployment, and what the deployment notes on them."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.embedded.wire import Json

from .ownership import reference
from .rollouts import Plan, Version
from .templates import HASH_LABEL, with_label

_PREFIX = "deployment.kubernetes.io/"
REVISION = f"{_PREFIX}revision"
_DESIRED, _MOST = f"{_PREFIX}desired-replicas", f"{_PREFIX}max-replicas"

# These belong to the deployment alone.
_OWN_NOTES = frozenset(
    (
        REVISION,
        _DESIRED,
        _MOST,
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    )
)


@dataclass(frozen=True, slots=True)
class Sets:
    """The sets of a deployment: that of its present template, if there is one, and the others."""

    new: Json | None
    old: list[Json]

    @property
    def all(self) -> list[Json]:
        return [*self.old, self.new] if self.new is not None else self.old

    @property
    def next_revision(self) -> int:
        """The number of the present version: it is the latest."""
        latest = max((revision_of(each) for each in self.old), default=0)
        return max(revision_of(self.new) if self.new is not None else 0, latest + 1)

    def were_meant_for_another(self, size: int) -> bool:
        """Whether the deployment had another size when its sets got theirs."""
        known = (_number(each, _DESIRED) for each in self.all if each["spec"]["replicas"])
        return any(each not in (None, size) for each in known)


def new_set(deployment: Json, named: str, size: int, revision: int) -> Json:
    """The set for the present template of a deployment."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = with_label(spec["template"], HASH_LABEL, named)
    chosen = spec["selector"]
    notes = {**notes_for_sets(deployment), REVISION: str(revision)}
    made: Json = {
        "metadata": {
            "name": f"{metadata['name']}-{named}",
            "labels": template["metadata"]["labels"],
            "annotations": {**notes, **size_notes(Plan.of(spec))},
            "ownerReferences": [reference(deployment)],
        },
        "spec": {
            "replicas": size,
            "selector": {
                **chosen,
                "matchLabels": {**(chosen.get("matchLabels") or {}), HASH_LABEL: named},
            },
            "template": template,
        },
    }
    if spec.get("minReadySeconds"):
        made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return made


def size_notes(plan: Plan) -> dict[str, str]:
    """What a set is told of the whole when it gets its size."""
    return {_DESIRED: str(plan.size), _MOST: str(plan.size + plan.surge)}


def notes_for_sets(deployment: Json) -> dict[str, str]:
    """The annotations of a deployment that its sets have, too."""
    notes = deployment["metadata"].get("annotations") or {}
    return {key: value for key, value in notes.items() if key not in _OWN_NOTES}


def version_of(each: Json) -> Version:
    return Version(
        name=each["metadata"]["name"],
        size=each["spec"]["replicas"],
        available=(each.get("status") or {}).get("availableReplicas", 0),
        most=_number(each, _MOST) or 0,
    )


def revision_of(item: Json) -> int:
    """The number of a version; 0 if it has none."""
    return _number(item, REVISION) or 0


def is_idle(each: Json) -> bool:
    """Whether a set is only kept for going back."""
    status = each.get("status") or {}
    observed = status.get("observedGeneration", 0) >= each["metadata"].get("generation", 0)
    return observed and not each["spec"]["replicas"] and not status.get("replicas", 0)


def _number(item: Json, note: str) -> int | None:
    text = (item["metadata"].get("annotations") or {}).get(note, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
