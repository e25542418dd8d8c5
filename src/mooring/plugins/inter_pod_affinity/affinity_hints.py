"""When a pod that InterPodAffinity rejected is worth another try."""

from __future__ import annotations

from collections.abc import Hashable

from mooring.framework.wakeups import Topics
from mooring.objects.node import Node
from mooring.objects.placement_rules import AffinityTerm
from mooring.objects.pod import Pod
from mooring.objects.selector import LabelMark, Labels, marks_of

_NO_LABELS: Labels = {}

# Whether more terms than this match costs more than a try for nothing.
_MANY_TERMS = 256


def pod_helps(waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod that came, changed or went may let the waiting pod in."""
    if old is not None and new is not None and new.uid == waiting.uid:
        return True
    if not all(each.node_name or each.nominated_node_name for each in (old, new) if each):
        return False
    terms = waiting.terms
    if terms.problem:
        return True
    if old is None:
        return new is not None and _matches_all(terms.affinity, new)
    if new is None:
        return _leaving_helps(waiting, old)
    arrives = not _matches_all(terms.affinity, old) and _matches_all(terms.affinity, new)
    leaves = _matches_all(terms.anti_affinity, old) and not _matches_all(terms.anti_affinity, new)
    return arrives or leaves


def _leaving_helps(waiting: Pod, gone: Pod) -> bool:
    return (
        _matches_all(waiting.terms.anti_affinity, gone)
        or bool(gone.terms.problem)
        or len(gone.terms.anti_affinity) > _MANY_TERMS
        or _matches_all(gone.terms.anti_affinity, waiting)
    )


def _matches_all(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    # Namespace selectors are not looked up here, as in kube-scheduler.
    matches = (term.matches(pod.namespace, pod.labels, _NO_LABELS) for term in terms)
    return bool(terms) and all(matches)


def node_helps(waiting: Pod, old: Node | None, new: Node) -> bool:
    """Whether a node that came or changed its labels may make room for the waiting pod.

    Terms of pods that run may keep it away, by labels that its own terms do not name: so every
    changed label counts. kube-scheduler asks for the pod's own labels, and lets such pods wait.
    """
    if old is None and not waiting.terms.problem:
        return all(term.topology_key in new.labels for term in waiting.terms.affinity)
    return old is None or old.labels != new.labels


# What such pods wait for

_OTHER, _OWN = "other", "own"


def _pods_waited_for(waiting: Pod) -> list[Hashable] | None:
    """Labels of the pods that its terms are about, and its own: others may be about these."""
    terms = waiting.terms
    if terms.problem:
        return None
    topics: list[Hashable] = [(_OWN, mark) for mark in marks_of(waiting.labels)]
    for rules in (terms.affinity, terms.anti_affinity):
        if rules:
            marks = _marks(rules)
            if marks is None:
                return None
            topics += [(_OTHER, mark) for mark in marks]
    return topics


def _pods_changed(old: Pod | None, new: Pod | None) -> list[Hashable] | None:
    pods = [each for each in (old, new) if each is not None]
    if not all(each.has_place for each in pods):
        return []
    topics: list[Hashable] = [(_OTHER, mark) for each in pods for mark in marks_of(each.labels)]
    if old is not None and new is None:
        terms = old.terms
        if terms.problem or len(terms.anti_affinity) > _MANY_TERMS:
            return None
        if terms.anti_affinity:
            marks = _marks(terms.anti_affinity)
            if marks is None:
                return None
            topics += [(_OWN, mark) for mark in marks]
    return topics


def _marks(terms: tuple[AffinityTerm, ...]) -> tuple[LabelMark, ...] | None:
    """Marks of which a pod that matches all terms bears one; None if it need not bear any."""
    for term in terms:
        marks = () if term.selector is None else term.selector.marks
        if marks is not None:
            return marks
    return None


POD_TOPICS = Topics(_pods_changed, _pods_waited_for)
