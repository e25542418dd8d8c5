"""Which group a pod names, asked about pods one after the other."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from moorage.cluster.pod_groups import KnownGroups
from moorage.objects.pod_group import GROUP_LABEL, GroupLinks
from tests.builders import pod

LINKS = st.builds(GroupLinks, native=st.booleans(), coscheduling=st.booleans())
NAMES = st.sampled_from(["", "a", "b"])
NAMED = st.lists(st.tuples(st.sampled_from(["x", "y"]), NAMES, NAMES), max_size=6)


@given(LINKS, NAMED)
def test_each_pod_is_told_its_own_group(
    links: GroupLinks, named: list[tuple[str, str, str]]
) -> None:
    groups = KnownGroups(links)

    for at, (namespace, by_field, by_label) in enumerate(named):
        spec = {"schedulingGroup": {"podGroupName": by_field}} if by_field else {}
        labels = {GROUP_LABEL: by_label} if by_label else {}
        asked = pod(f"p{at}", namespace=namespace, labels=labels, spec=spec)

        assert groups.key_of(asked) == links.key(asked)
