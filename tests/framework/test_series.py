"""Histograms count what they are given, however much of it."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given

from moorage.framework.series import Counts, Histogram, Kind, Metric

METRIC = Metric("name", Kind.HISTOGRAM, "help", ("label",), (1.0, 2.0, 4.0))


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 4.0, 4.5, 1e9]), max_size=1_500))
def test_a_bucket_holds_what_is_at_most_its_bound(values: list[float]) -> None:
    histogram = Histogram(METRIC)
    for value in values:
        histogram.observe(("a",), value)

    found = {labels: (buckets.counts.tolist(), buckets.sum) for labels, buckets in histogram}

    first, second, third = (sum(value <= bound for value in values) for bound in (1, 2, 4))
    counts = [first, second - first, third - second, len(values) - third]
    assert found == ({("a",): (counts, sum(values))} if values else {})


def test_labels_are_kept_apart_and_nothing_is_counted_twice() -> None:
    histogram = Histogram(METRIC)
    histogram.observe(("b",), 1.0)
    histogram.observe_all(("a",), [3.0, 3.0])

    first = {labels: buckets.count for labels, buckets in histogram}
    again = {labels: buckets.count for labels, buckets in histogram}

    assert first == again == {("a",): 2, ("b",): 1}
    assert list(first) == [("a",), ("b",)]


def test_a_histogram_without_labels_is_there_from_the_start() -> None:
    (found,) = Histogram(replace(METRIC, labels=()))

    assert (found[0], found[1].counts.tolist()) == ((), [0, 0, 0, 0])


def test_a_counter_adds_up() -> None:
    counts = Counts(METRIC, [(("b",), 2)])
    counts.add(("b",))
    counts.add(("a",), 5)

    assert list(counts) == [(("a",), 5), (("b",), 3)]
