"""Paths of the API."""

from __future__ import annotations

import pytest

from mooring.client import RESOURCES, Resource
from mooring.objects.decode import KINDS

WIDGETS = Resource("example.com", "v1alpha1", "widgets", "Widget")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (RESOURCES["Pod"].path(), "/api/v1/pods"),
        (RESOURCES["Pod"].path("a"), "/api/v1/namespaces/a/pods"),
        (RESOURCES["Pod"].path("a", "b"), "/api/v1/namespaces/a/pods/b"),
        (RESOURCES["Pod"].path("a", "b", "binding"), "/api/v1/namespaces/a/pods/b/binding"),
        (RESOURCES["Node"].path(name="n"), "/api/v1/nodes/n"),
        (RESOURCES["Node"].path("ignored", "n"), "/api/v1/nodes/n"),
        (RESOURCES["Namespace"].path(name="a"), "/api/v1/namespaces/a"),
        (RESOURCES["StatefulSet"].path("a", "b"), "/apis/apps/v1/namespaces/a/statefulsets/b"),
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


def test_every_kind_that_scheduling_reads_has_a_path() -> None:
    assert set(RESOURCES) >= KINDS
