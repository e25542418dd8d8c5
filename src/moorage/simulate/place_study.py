"""How identical pods follow each other, and which nodes take no second one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from moorage.cluster import Nodes
from moorage.engine import Engine
from moorage.engine.cycle import Found
from moorage.framework.attempt import Failed
from moorage.framework.observe import UNOBSERVED
from moorage.framework.points import fits_on, pre_filter
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod


@dataclass(slots=True)
class PlaceStudy:
    """Figures about the decisions of one profile. They cost about as much as a decision."""

    profile: Profile
    nodes: Nodes
    #: The most identical pods that followed each other.
    longest_run: int = 0
    #: Placements after which the node took no other such pod, of those that were looked at.
    alone_on_node: int = 0
    looked_at: int = 0
    _last: int | None = None
    _length: int = 0
    #: The row of the last pod of each signature.
    _places: dict[int, int] = field(default_factory=dict)

    def count(self, pod: Pod, signature: int | None, outcome: Found | Failed) -> None:
        """Counts a decision that is not carried out yet."""
        self._length = self._length + 1 if signature == self._last else 1
        self._last = signature
        if signature is None:
            return
        self.longest_run = max(self.longest_run, self._length)
        row = self._places.get(signature)
        if row is not None and self.nodes.alive[row]:
            self._look_back(pod, row)
        if isinstance(outcome, Found):
            self._places[signature] = outcome.row

    def _look_back(self, pod: Pod, row: int) -> None:
        """Counts whether the place of the last identical pod takes this one."""
        try:
            prepared = pre_filter(self.profile, pod, self.nodes)
            names = prepared.node_names
            if prepared.rejected is None and (names is None or self.nodes.name(row) in names):
                self.alone_on_node += not fits_on(self.profile, pod, prepared, self.nodes, row)
                self.looked_at += 1
        except PluginError:
            # The decision has reported it.
            return


def study_places(engine: Engine) -> Mapping[str, PlaceStudy]:
    """Begins a study of all further decisions; returns it by profile."""
    studies = {}
    for name, classes in engine.classes.items():
        profile = replace(engine.profiles[name], observer=UNOBSERVED)
        study = studies[name] = PlaceStudy(profile, engine.cluster.nodes)
        classes.on_decided = study.count
    return studies
