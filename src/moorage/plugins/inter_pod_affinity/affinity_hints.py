"""When a pod that InterPodAffinity rejected is worth another try."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain

from moorage.cluster import View
from moorage.cluster.standing_terms import TermKind
from moorage.framework.wakeups import Topics
from moorage.objects.node import Node
from moorage.objects.placement_rules import AffinityTerm
from moorage.objects.pod import Pod
from moorage.objects.selector import LabelMark, marks_of

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
    return arrives or any(
        _may_match(term, old) and not _may_match(term, new) for term in terms.anti_affinity
    )


def _leaving_helps(waiting: Pod, gone: Pod) -> bool:
    return (
        _matches_any(waiting.terms.anti_affinity, gone)
        or bool(gone.terms.problem)
        or len(gone.terms.anti_affinity) > _MANY_TERMS
        or _matches_any(gone.terms.anti_affinity, waiting)
    )


def _matches_all(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    return bool(terms) and all(_may_match(term, pod) for term in terms)


def _matches_any(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    return any(_may_match(term, pod) for term in terms)


def _may_match(term: AffinityTerm, pod: Pod) -> bool:
    """Whether a term may match a pod. Which namespaces a selector selects is not known here.

    kube-scheduler asks it about a namespace without labels: so it lets pods wait that have a place.
    """
    if term.namespace_selector is None and pod.namespace not in term.namespaces:
        return False
    return term.selector is not None and term.selector.matches(pod.labels)


def node_helps(nodes: View | None, waiting: Pod, old: Node | None, new: Node) -> bool:
    """Whether a node that came or changed its labels may make room for the waiting pod.

    Without nodes it is not known which pods keep it away. kube-scheduler asks for the keys of the
    pod's own terms alone, and lets pods wait that terms of other pods keep away.
    """
    terms = waiting.terms
    if old is None:
        return bool(terms.problem) or all(
            term.topology_key in new.labels for term in terms.affinity
        )
    changed = {key for key, _ in old.labels.items() ^ new.labels.items()}
    if not changed:
        return False
    if terms.problem or nodes is None or nodes.nominations.are_there:
        # Pods that are nominated keep others away, too.
        return True
    standing = (each.term for each in nodes.standing(TermKind.ANTI_AFFINITY, waiting))
    deciding = chain(terms.affinity, terms.anti_affinity, standing)
    return any(term.topology_key in changed for term in deciding)


# What such pods wait for

_OTHER, _OWN = "other", "own"


def _pods_waited_for(waiting: Pod) -> list[Hashable] | None:
    """Labels of the pods that its terms are about, and its own: others may be about these."""
    terms = waiting.terms
    if terms.problem:
        return None
    topics: list[Hashable] = [(_OWN, mark) for mark in marks_of(waiting.labels)]
    wanted = _marks_of_all(terms.affinity) if terms.affinity else ()
    unwanted = _marks_of_any(terms.anti_affinity)
    if wanted is None or unwanted is None:
        return None
    return topics + [(_OTHER, mark) for mark in (*wanted, *unwanted)]


def _pods_changed(old: Pod | None, new: Pod | None) -> list[Hashable] | None:
    pods = [each for each in (old, new) if each is not None]
    if not all(each.has_place for each in pods):
        return []
    topics: list[Hashable] = [(_OTHER, mark) for each in pods for mark in marks_of(each.labels)]
    if old is not None and new is None:
        terms = old.terms
        if terms.problem or len(terms.anti_affinity) > _MANY_TERMS:
            return None
        marks = _marks_of_any(terms.anti_affinity)
        if marks is None:
            return None
        topics += [(_OWN, mark) for mark in marks]
    return topics


def _marks_of_all(terms: tuple[AffinityTerm, ...]) -> tuple[LabelMark, ...] | None:
    """Marks of which a pod that matches all terms bears one; None if it need not bear any."""
    found = (_marks_of(term) for term in terms)
    return next((marks for marks in found if marks is not None), None)


def _marks_of_any(terms: tuple[AffinityTerm, ...]) -> tuple[LabelMark, ...] | None:
    """Marks of which a pod that matches any term bears one; None if it need not bear any."""
    found: list[LabelMark] = []
    for term in terms:
        marks = _marks_of(term)
        if marks is None:
            return None
        found += marks
    return tuple(found)


def _marks_of(term: AffinityTerm) -> tuple[LabelMark, ...] | None:
    return () if term.selector is None else term.selector.marks


POD_TOPICS = Topics(_pods_changed, _pods_waited_for)
