"""The plugins that refuse rows, and why, for a pod that fits nowhere: updated row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask
from moorage.framework.attempt import Filtered, Layer
from moorage.framework.status import Reason
from moorage.framework.verdict import Verdict

# Texts of reasons may differ from row to row. So many that no row gives any more are kept.
_MOST_REASONS = 64


class PluginRefusals:
    """The rows that one plugin is the first to refuse, with its reasons."""

    def __init__(self, plugin: str, rows: int) -> None:
        self._plugin = plugin
        self._places: dict[Reason, int] = {}
        self._failed = np.zeros((1, rows), np.bool_)
        self._decided: Mask = np.zeros(rows, np.bool_)

    def __len__(self) -> int:
        """Returns how many reasons there are or were."""
        return len(self._places)

    def clear(self, positions: NDArray[np.intp]) -> None:
        self._failed[:, positions] = False
        self._decided[positions] = False

    def put(self, positions: NDArray[np.intp], layer: Layer) -> None:
        """Takes over the plugin's answers for rows that it was the first to refuse."""
        refused = positions[layer.decided]
        self._decided[refused] = True
        for reason, failed in zip(layer.verdict.reasons, layer.verdict.failed, strict=True):
            flags = failed[layer.decided]
            if flags.any():
                # This may replace the array, so it comes first.
                place = self._find_place(reason)
                self._failed[place, refused] = flags

    def says(self, position: int, layer: Layer) -> bool:
        """Whether the plugin's answer for one row is known to equal that of the layer's row."""
        if not self._decided[position]:
            return False
        flags = self._failed[:, position].tolist()
        refused = zip(layer.verdict.reasons, layer.verdict.failed[:, 0].tolist(), strict=True)
        places = [self._places.get(reason) for reason, failed in refused if failed]
        return sum(flags) == len(places) and all(at is not None and flags[at] for at in places)

    def _find_place(self, reason: Reason) -> int:
        place = self._places.setdefault(reason, len(self._places))
        if place == len(self._failed):
            self._failed = np.concatenate((self._failed, np.zeros_like(self._failed)))
        return place

    def show(self) -> Layer:
        count = len(self._places)
        verdict = Verdict(tuple(self._places), self._failed[:count].copy())
        return Layer(self._plugin, verdict, self._decided.copy())


class Refusals:
    """The answers of all plugins for all rows: each row has one plugin that refuses it first."""

    def __init__(self, filtered: Filtered) -> None:
        """Starts from a result for all rows, in ascending order."""
        self._rows = filtered.rows
        self._none: Mask = np.zeros(len(filtered.rows), np.bool_)
        self._plugins: dict[str, PluginRefusals] = {}
        self._add(filtered)
        self._most = len(self) + _MOST_REASONS

    def __len__(self) -> int:
        return sum(map(len, self._plugins.values()))

    @property
    def has_too_many_reasons(self) -> bool:
        """Whether so many reasons were added that it is better to begin anew."""
        return len(self) > self._most

    def say(self, filtered: Filtered) -> bool:
        """Whether the answer for one refused row is known already."""
        if len(filtered.rows) != 1:
            return False
        layer = _find_layer(filtered)
        known = None if layer is None else self._plugins.get(layer.plugin)
        if layer is None or known is None:
            return False
        return known.says(int(self._rows.searchsorted(filtered.rows[0])), layer)

    def put(self, filtered: Filtered) -> None:
        """Takes over the answers for some rows that are all refused."""
        positions = self._find_positions(filtered)
        for each in self._plugins.values():
            each.clear(positions)
        self._add(filtered)

    def show(self) -> Filtered:
        """Returns the present result for all rows."""
        layers = tuple(each.show() for each in self._plugins.values())
        return Filtered(self._rows, self._none, layers)

    def _find_positions(self, filtered: Filtered) -> NDArray[np.intp]:
        """Returns the positions of rows among all rows."""
        return np.searchsorted(self._rows, filtered.rows)

    def _add(self, filtered: Filtered) -> None:
        positions = self._find_positions(filtered)
        for layer in filtered.layers:
            known = self._plugins.get(layer.plugin)
            if known is None:
                known = self._plugins[layer.plugin] = PluginRefusals(layer.plugin, len(self._rows))
            known.put(positions, layer)
        for other in filtered.amended:
            self._add(other)


def _find_layer(filtered: Filtered) -> Layer | None:
    """Returns the layer that rejects the only row of a result."""
    for layer in filtered.layers:
        if layer.decided[0]:
            return layer
    return next(filter(None, map(_find_layer, filtered.amended)), None)
