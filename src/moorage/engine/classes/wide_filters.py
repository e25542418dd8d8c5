"""The filters of a class whose answer for a row depends on other rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from moorage.cluster import Mask, Nodes
from moorage.framework.attempt import PreFiltered
from moorage.framework.calls import ask_filter, ask_pre_filter, ask_watch
from moorage.framework.plugin import Filter, Narrowed, Plugin, PreFilter
from moorage.framework.status import Rejected
from moorage.objects.pod import Pod

from .parts import Unserved, WideFilter

# Answers of a pre-filter with which no class is made.
_NO_COLUMN = (Rejected, Narrowed)


class WideFilters:
    """The wide filters of a class, and what they say of the last pod."""

    def __init__(self, pre_filtered: PreFiltered, nodes: Nodes) -> None:
        self._nodes = nodes
        self._filters: list[WideFilter] = []
        self._pre_filtered = pre_filtered
        #: What `newest_prepared` returns; None until it is put together anew.
        self._newest: PreFiltered | None = None
        #: The rows that each filter rejects, if it rejects any.
        self.rejections: list[Mask] = []
        #: Whether one of them rejects every row.
        self.reject_all = False

    def __iter__(self) -> Iterator[WideFilter]:
        return iter(self._filters)

    def add(self, plugin: Filter[Any], watch: int, pod: Pod) -> WideFilter:
        """Adds a filter and asks it about a pod."""
        wide = WideFilter(plugin, watch, isinstance(plugin, PreFilter))
        self._filters.append(wide)
        self._ask(wide, pod)
        self._note_rejections()
        return wide

    def refresh(self, pod: Pod, union: int, unlike: Sequence[Plugin]) -> bool:
        """Asks the filters again that read such changes, or tell the pod from the last one.

        Returns whether they watch the same as before, and the same of them skip themselves.
        """
        is_same = True
        for wide in self._filters:
            if wide.watch & union or wide.plugin in unlike:
                watched, skipped = wide.watch, wide.prepared is None
                wide.watch = ask_watch(wide.plugin, pod, self._nodes)
                self._ask(wide, pod)
                is_same &= wide.watch == watched and (wide.prepared is None) == skipped
        self._note_rejections()
        return is_same

    def _ask(self, wide: WideFilter, pod: Pod) -> None:
        plugin: Any = wide.plugin
        nodes = self._nodes
        wide.prepared = pod
        if wide.prepares:
            wide.prepared = ask_pre_filter(plugin, pod, nodes)
            if isinstance(wide.prepared, _NO_COLUMN):
                raise Unserved
        self._newest = None
        wide.verdict, wide.rejected, wide.rejects_all = None, None, False
        if wide.prepared is not None:
            verdict = ask_filter(plugin, wide.prepared, nodes, nodes.everything)
            rejected = verdict.rejected if verdict.reasons else None
            count = 0 if rejected is None else np.count_nonzero(rejected)
            if rejected is not None and count:
                wide.verdict, wide.rejected = verdict, rejected
                wide.rejects_all = count == len(rejected)

    def _note_rejections(self) -> None:
        self.rejections = [wide.rejected for wide in self._filters if wide.rejected is not None]
        self.reject_all = any(wide.rejects_all for wide in self._filters)

    def newest_prepared(self) -> PreFiltered:
        """Returns what is prepared for all filters, with the newest values for these."""
        if self._newest is not None:
            return self._newest
        prepared = dict(self._pre_filtered.prepared)
        skipped = set(self._pre_filtered.skipped)
        for wide in self._filters:
            if wide.prepares:
                name = wide.plugin.name
                prepared.pop(name, None)
                skipped.discard(name)
                if wide.prepared is None:
                    skipped.add(name)
                else:
                    prepared[name] = wide.prepared
        self._newest = PreFiltered(prepared, frozenset(skipped))
        return self._newest
