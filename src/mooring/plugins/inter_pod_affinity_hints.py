"""When a pod that InterPodAffinity rejected is worth another try."""

from __future__ import annotations

from mooring.objects.affinity import Term
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.selector import Labels

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


def _matches_all(terms: tuple[Term, ...], pod: Pod) -> bool:
    # Namespace selectors are not looked up here, as in kube-scheduler.
    matches = (term.matches(pod.namespace, pod.labels, _NO_LABELS) for term in terms)
    return bool(terms) and all(matches)


def node_helps(waiting: Pod, old: Node | None, new: Node) -> bool:
    """Whether a node that came or changed its labels may take the waiting pod."""
    terms = waiting.terms
    if terms.problem:
        return True
    was = _NO_LABELS if old is None else old.labels
    moved = {term.topology_key for term in (*terms.affinity, *terms.anti_affinity)}
    moved = {key for key in moved if was.get(key) != new.labels.get(key)}
    if any(term.topology_key in moved & new.labels.keys() for term in terms.affinity):
        return True
    if old is None:
        return bool(terms.anti_affinity)
    return any(term.topology_key in moved & was.keys() for term in terms.anti_affinity)
