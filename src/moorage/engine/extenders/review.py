"""Asks extenders about evictions: which nodes and victims of a plugin's proposals are left."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.config import Extender
from moorage.engine.events import ExtenderAnswered
from moorage.engine.extender_answers import NodeVictims, PreemptAnswer
from moorage.engine.remedies import RemedyResult, RemedySearch
from moorage.framework.attempt import Failed
from moorage.framework.calls import ask_post_filter, ask_to_choose, ask_to_propose
from moorage.framework.observe import ERROR, POST_FILTER, make_caller
from moorage.framework.plugin import NoRemedy, PostFilter, Preempt, ProposedEviction, Remedy
from moorage.framework.status import Code, PluginError

from .consultation import Consultation, ExtenderFailed, Steps
from .questions import PREEMPT
from .survey import Overtaken

_Proposals = dict[str, ProposedEviction]


class Review:
    """The search for a remedy for one pod, in which extenders take part."""

    def __init__(self, consultation: Consultation, failed: Failed) -> None:
        self._consultation = consultation
        self._survey = consultation.survey
        self._failed = failed

    def seek_remedy(self) -> Steps[RemedyResult]:
        """Seeks a remedy as `remedies.seek_remedy` does, but extenders may change the proposals."""
        search = RemedySearch(self._survey.profile)
        for plugin in self._survey.profile.post_filter:
            try:
                answer = yield from self._ask(plugin)
            except PluginError as error:
                return RemedyResult(str(error), status=ERROR)
            remedied = search.take(plugin.name, answer)
            if remedied is not None:
                return remedied
        return search.give_up()

    def _ask(self, plugin: PostFilter) -> Steps[Remedy | NoRemedy]:
        survey = self._survey
        ask = make_caller(survey.profile.observer, POST_FILTER)
        about = survey.pod, self._failed, survey.nodes, survey.profile
        if not isinstance(plugin, Preempt):
            return ask_post_filter(plugin, ask, *about)
        proposed = ask_to_propose(plugin, ask, *about)
        if isinstance(proposed, NoRemedy):
            return proposed
        try:
            left = yield from self._review({each.node_name: each for each in proposed})
        except ExtenderFailed as error:
            return NoRemedy(Code.ERROR, (f"preemption: {error}",))
        answer = ask_to_choose(plugin, left, survey.nodes)
        if isinstance(answer, Remedy):
            self._check(plugin, answer)
        return answer

    def _review(self, proposals: _Proposals) -> Steps[Sequence[ProposedEviction]]:
        """Asks one extender after the other which proposals are left."""
        consultation = self._consultation
        for place, extender in consultation.extenders:
            if not extender.preempt_verb:
                continue
            victims = {name: _name_victims(each) for name, each in proposals.items()}
            (answered,) = yield (consultation.ask(place, PREEMPT, victims=victims),)
            try:
                proposals = self._take(extender, answered, proposals)
            except ExtenderFailed:
                if not extender.ignorable:
                    raise
            if not proposals:
                break
        return tuple(proposals.values())

    def _take(
        self, extender: Extender, answered: ExtenderAnswered, asked: _Proposals
    ) -> _Proposals:
        answer = answered.answer
        if not isinstance(answer, PreemptAnswer):
            raise ExtenderFailed(answered.failure)
        left = {
            name: self._find_victims(extender, name, answer.victims[name], asked)
            for name in sorted(answer.victims)
        }
        empty = next((name for name, each in left.items() if not each.victims), None)
        if empty is not None and not extender.ignorable:
            raise ExtenderFailed(f'expected at least one victim pod on node "{empty}"')
        # The order of the proposals settles ties.
        order = {**asked, **left}
        return {name: left[name] for name in order if name in left and left[name].victims}

    def _find_victims(
        self, extender: Extender, name: str, there: NodeVictims, asked: _Proposals
    ) -> ProposedEviction:
        """Returns the pods that an extender names on a node, without those that are gone."""
        row = self._survey.nodes.row(name)
        if row is None:
            raise ExtenderFailed(f'nodeinfo not found for node name "{name}"')
        known = self._survey.nodes.pods(row)
        proposed = {pod.uid for pod in asked[name].victims} if name in asked else set()
        unknown = next((uid for uid in there.uids if uid not in {*known, *proposed}), None)
        if unknown is not None:
            claim = f"extender: {extender.url_prefix} claims to preempt pod"
            where = f"on node: {name}, but the pod is not found on that node"
            raise ExtenderFailed(f"{claim} (UID: &{{{unknown}}}) {where}")
        victims = tuple(known[uid] for uid in there.uids if uid in known)
        return ProposedEviction(name, victims, there.violations)

    def _check(self, plugin: Preempt, remedy: Remedy) -> None:
        """Raises Overtaken if the cluster has changed and evicting does not help any more."""
        survey = self._survey
        if survey.is_current:
            return
        if len(survey.look_again()):
            raise Overtaken
        ask = make_caller(survey.profile.observer, POST_FILTER)
        about = survey.pod, survey.fail(), survey.nodes, survey.profile
        proposed = ask_to_propose(plugin, ask, *about)
        if isinstance(proposed, NoRemedy) or remedy.node_name not in {
            each.node_name for each in proposed
        }:
            raise Overtaken


def _name_victims(proposed: ProposedEviction) -> NodeVictims:
    return NodeVictims(tuple(pod.uid for pod in proposed.victims), proposed.violations)
