"""The table of kinds, and the paths of the API."""

from __future__ import annotations

import json

import pytest

from moorage.framework.wakeups import Resource
from moorage.objects.decode import from_builtins, from_json, reader
from moorage.objects.kinds import KINDS, READ_KINDS
from moorage.objects.meta import ObjectKind

WIDGETS = ObjectKind("example.com", "v1alpha1", "Widget", "widgets")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (KINDS["Pod"].path(), "/api/v1/pods"),
        (KINDS["Pod"].path("a"), "/api/v1/namespaces/a/pods"),
        (KINDS["Pod"].path("a", "b"), "/api/v1/namespaces/a/pods/b"),
        (KINDS["Pod"].path("a", "b", "binding"), "/api/v1/namespaces/a/pods/b/binding"),
        (KINDS["Node"].path(name="n"), "/api/v1/nodes/n"),
        (KINDS["Node"].path("ignored", "n"), "/api/v1/nodes/n"),
        (KINDS["Namespace"].path(name="a"), "/api/v1/namespaces/a"),
        (KINDS["StatefulSet"].path("a", "b"), "/apis/apps/v1/namespaces/a/statefulsets/b"),
        (WIDGETS.path("a"), "/apis/example.com/v1alpha1/namespaces/a/widgets"),
        (WIDGETS.path("a", "x/../y?z#"), f"{WIDGETS.path('a')}/x%2F..%2Fy%3Fz%23"),
        (WIDGETS.path("a", "system:x"), f"{WIDGETS.path('a')}/system:x"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_would_lead_elsewhere(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        WIDGETS.path("a", name)


@pytest.mark.parametrize("name", sorted(READ_KINDS))
def test_every_kind_that_scheduling_reads_can_be_read(name: str) -> None:
    kind = KINDS[name]
    raw = {"metadata": {"name": "x"}}

    item = from_builtins(name, raw)

    assert type(item) is kind.item
    assert from_json(name, json.dumps(raw)) == item
    assert reader(kind) is not None


def test_every_event_of_a_known_kind_has_its_entry() -> None:
    """But for the names that stand for some pods, or for everything."""
    names = {kind.event_resource for kind in KINDS.values()}

    assert set(Resource) - names == {
        Resource.ANYTHING,
        Resource.ASSIGNED_POD,
        Resource.UNSCHEDULED_POD,
    }
