"""Decides about single pods: at which node the search begins, and which class answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster
from moorage.framework.attempt import Failed
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

from .classes.classes import Classes
from .classes.pod_class import PodClass
from .cycle import EVERY_NODE, Found, Window, looked_at
from .extenders.survey import PodSurvey
from .gangs.group_result import Domain

# After so many placements per node, ties begin at the next node: pods that ask for nothing, which
# all nodes of a full cluster suit equally well, do not all go to one. Rarely, because whatever is
# ranked for like pods is then ranked anew.
_PLACEMENTS_PER_TURN = 16


class Decider:
    """Decides about pods of all profiles, without changing the cluster."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        cluster: Cluster,
        classes: Mapping[str, Classes],
        is_extended: bool,
    ) -> None:
        self.profiles = profiles
        self.cluster = cluster
        self._classes = classes
        #: Whether extenders choose among nodes.
        self._is_extended = is_extended
        # Schedulers of different names start their search at different nodes, so that they do
        # not run after the same ones.
        self.start = crc32(next(iter(profiles)).encode())
        #: By how many nodes the search for extenders starts later: it may stop early where that of
        #: others does not, and what is ranked for these is to stay.
        self._survey_start = 0
        self._placed_in_turn = 0

    def decide(
        self, profile: Profile, pod: Pod, rows: NDArray[np.intp] | None = None
    ) -> Found | Failed | None:
        """Decides about a pod; returns None without nodes. With rows, only these count."""
        count = len(self.cluster.nodes)
        if not count:
            return None
        window = self._make_window(profile, count, rows)
        outcome = self._classes[profile.name].decide(pod, window)
        if outcome.filtered is not None:
            self.start += looked_at(outcome, window, profile)
        if isinstance(outcome, Found):
            self._take_turn(count)
        return outcome

    def decide_member(self, pod: Pod, domain: Domain) -> Found | Failed | None:
        """Decides about a member of a group on the nodes of a domain."""
        return self.decide(self.profiles[pod.spec.scheduler_name], pod, domain.rows)

    def find_class(self, pod: Pod) -> PodClass | None:
        """Returns the class of pods like one."""
        return self._classes[pod.spec.scheduler_name].find_class(pod, EVERY_NODE)

    def survey(self, pod: Pod) -> PodSurvey:
        """Returns what plugins say about a pod that extenders are asked about, too."""
        profile, count = self.profiles[pod.spec.scheduler_name], len(self.cluster.nodes)
        window = self._make_window(profile, count, offset=self._survey_start)
        return PodSurvey(profile, pod, self.cluster, self._classes[profile.name], window)

    def count_survey(self, profile: Profile, survey: PodSurvey) -> None:
        """Makes the next search begin where the one of a decision ended."""
        if profile.percentage_of_nodes_to_score:
            self.start += survey.looked_at
        else:
            self._survey_start += survey.looked_at
        self._take_turn(len(self.cluster.nodes))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps decisions within the context from influencing later ones."""
        turn = self.start, self._placed_in_turn
        try:
            yield
        finally:
            self.start, self._placed_in_turn = turn

    def _make_window(
        self, profile: Profile, count: int, rows: NDArray[np.intp] | None = None, offset: int = 0
    ) -> Window:
        start = (self.start + offset) % count
        return Window(start, profile.percentage_of_nodes_to_score, self._is_extended, rows)

    def _take_turn(self, count: int) -> None:
        """Counts a placement; after some, ties begin at the next of that many nodes."""
        self._placed_in_turn += 1
        if self._placed_in_turn >= _PLACEMENTS_PER_TURN * count:
            self._placed_in_turn = 0
            self.start += 1
