"""How much work a decision may take. It is counted beforehand, so that decisions stay pure.

A unit of work is one array element that is read, about a nanosecond. The cost of a pod's rules
follows from the pod and the size of the cluster alone: it does not depend on whether answers are
reused, and a replay counts the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace

from moorage.cluster import Cluster
from moorage.objects.node_selector import NodeSelectorTerm
from moorage.objects.per_template import once_per_template
from moorage.objects.placement_rules import Affinity
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.selector import LabelSelector

#: The most work of one decision: about a third of a second. The costliest pod of scheduler_perf's
#: workloads takes a five-hundredth of it at 5,000 nodes; a pod with 20 rules of each kind takes a
#: tenth at 15,000 nodes and 450,000 pods.
MOST_WORK = 300_000_000

#: Pods with no more rules are ordinary: they are never too costly, and their answers are reused.
FEW_RULES = 128

#: To explain a pod, it is decided about so often, with one thing or another changed.
PASSES_TO_EXPLAIN = 30

#: The most work of looking for places of a group, and again of looking for victims: about half a
#: second each. Once it is spent, no further domain, order or set of victims is tried.
MOST_GROUP_WORK = 600_000_000

#: So many pods are lifted to see whether a group fits without them.
MOST_LIFTED = 8_000

#: What it takes to lift a pod, or to put it back.
LIFT_WORK = 10_000

#: The reason of the condition of a pod that is left alone because of its cost.
TOO_COSTLY = "TooCostly"

# What calling NumPy costs beside the places that it looks at, and a step of Python.
_CALL = 2_000
_STEP = 300

# Each term of a pod chooses among all pods, adds up per row, and looks at each row.
_PASSES_PER_TERM = 4
# Each resource is compared twice, and each comparison has a reason.
_PASSES_PER_RESOURCE = 6

# Several plugins look at a bound claim. For an unbound one, each row keeps what it would get.
_PASSES_PER_BOUND_CLAIM = 10
_PASSES_PER_UNBOUND_CLAIM = 100

# What one more of many like members costs, and what each of its terms adds for a node.
_MEMBER = 50_000
_PER_TERM_OF_MEMBER = 40

# Several plugins look at each volume.
_PER_VOLUME = 16

# A pod that is too costly is tried again after a minute, then after twice as long each time.
_FIRST_DELAY = 60
_LONGEST_DELAY = 3_600


@dataclass(frozen=True, slots=True)
class Rules:
    """How many rules a template has, by their cost."""

    #: Looked at for every node: expressions, selector labels, host ports.
    of_nodes: int
    resources: int
    #: Looked at for every pod: terms, spread constraints, and requirements of their selectors.
    terms: int
    of_pods: int
    #: Looked at for every namespace.
    of_namespaces: int
    tolerations: int
    #: Looked at once: values, containers, volumes, gates.
    others: int

    @property
    def count(self) -> int:
        return sum(astuple(self))


def is_ordinary(pod: Pod) -> bool:
    """Whether a pod has so few rules that they need not be counted."""
    return _count_all(pod.spec) + len(pod.labels) <= FEW_RULES


@once_per_template
def _count_all(spec: PodSpec) -> int:
    """Returns how many rules a template has."""
    count = rules_of(spec.template).count
    return count if spec.template is spec else count + _PER_VOLUME * len(spec.volumes or ())


def work(pod: Pod, cluster: Cluster) -> int:
    """Returns the largest work that a decision about a pod may take."""
    rules, nodes = rules_of(pod.spec), cluster.nodes
    per_node, per_pod = len(nodes) + _CALL, len(cluster.pods) + _CALL
    taints = sum(map(len, nodes.taints.in_use()))
    return (
        rules.of_nodes * per_node
        + rules.resources * _PASSES_PER_RESOURCE * per_node
        + rules.terms * _PASSES_PER_TERM * (per_node + per_pod)
        + rules.of_pods * per_pod
        + rules.of_namespaces * len(nodes.workloads.namespaces) * _STEP
        + rules.tolerations * (taints + 1) * _STEP
        + (rules.others + len(pod.labels) + len(pod.annotations)) * _STEP
        + _claim_work(pod, cluster, per_node)
    )


def _claim_work(pod: Pod, cluster: Cluster, per_node: int) -> int:
    """Returns the work of finding where the volumes of a pod are, can be bound, or can be made."""
    storage = cluster.nodes.storage
    claims = [storage.known_claim(f"{pod.namespace}/{use.name}") for use in pod.claims]
    unbound = [claim for claim in claims if claim is not None and not claim.is_bound]
    free = {name: storage.count_free(name) for name in {each.class_name for each in unbound}}
    # Each claim gets the first free volume of a row that the claims before it have left.
    compared = sum(min(free[each.class_name], len(unbound)) for each in unbound) * len(unbound)
    return (
        (len(claims) - len(unbound)) * _PASSES_PER_BOUND_CLAIM * per_node
        + len(unbound) * _PASSES_PER_UNBOUND_CLAIM * per_node
        + compared * per_node
        + sum(free[each.class_name] for each in unbound) * _STEP
    )


def excess(pod: Pod, cluster: Cluster, most: int | None = None) -> str | None:
    """Returns why a pod is too costly to be decided; None if it is not."""
    if is_ordinary(pod):
        return None
    needed = work(pod, cluster)
    most = MOST_WORK if most is None else most
    if needed <= most:
        return None
    rules = rules_of(pod.spec)
    return (
        f"the pod's {rules.count} rules need {needed / 1_000_000:.1f} million steps, "
        f"{most / 1_000_000:.1f} million are the most"
    )


def member_work(pod: Pod, cluster: Cluster) -> int:
    """Returns the work of deciding about one of many like members of a group."""
    if not is_ordinary(pod):
        return work(pod, cluster)
    return _MEMBER + rules_of(pod.spec).terms * _PER_TERM_OF_MEMBER * len(cluster.nodes)


def group_excess(members: Iterable[Pod], cluster: Cluster) -> str | None:
    """Returns why a group is too costly to be decided; None if it is not."""
    works: dict[int, int] = {}
    needed = count = known = 0
    spec = None
    for pod in members:
        if pod.spec is not spec:
            # Mostly, members have one template.
            spec = pod.spec
            if id(spec) not in works:
                works[id(spec)] = member_work(pod, cluster)
            known = works[id(spec)]
        needed += known
        count += 1
    if needed <= MOST_GROUP_WORK:
        return None
    return (
        f"the group's {count} members need {needed / 1_000_000:.1f} million steps, "
        f"{MOST_GROUP_WORK / 1_000_000:.1f} million are the most"
    )


def delay(attempt: int) -> float:
    """Returns how many seconds a pod waits that is too costly, after so many attempts."""
    return float(min(_FIRST_DELAY * 2 ** (attempt - 1), _LONGEST_DELAY))


def delay_after(pod: Pod, cluster: Cluster) -> float:
    """Returns how long a pod waits after a decision: with many rules, in proportion to them."""
    if is_ordinary(pod):
        return 0.0
    return _FIRST_DELAY * min(work(pod, cluster) / MOST_WORK, 1.0)


@once_per_template
def rules_of(spec: PodSpec) -> Rules:
    """Returns the rules of a template; they are counted once."""
    rules = _count_rules(spec) if spec.template is spec else rules_of(spec.template)
    if not spec.volumes:
        return rules
    return replace(rules, others=rules.others + _PER_VOLUME * len(spec.volumes))


def _count_rules(spec: PodSpec) -> Rules:
    """Counts the rules of a template without its volumes."""
    expressions, values = _node_rules(spec)
    affinity = spec.affinity or Affinity()
    towards, away = affinity.pod_affinity, affinity.pod_anti_affinity
    terms = [term for rules in (towards, away) if rules is not None for term in rules.terms]
    spreads = spec.topology_spread_constraints or ()
    selectors = [*(each.label_selector for each in terms)]
    selectors += (each.label_selector for each in spreads)
    spaces = [each.namespace_selector for each in terms]
    named = sum(len(each.namespaces or ()) for each in terms)
    keys = sum(len(each.match_label_keys or ()) for each in spreads)
    containers = spec.all_containers
    ports = sum(len(each.ports or ()) for each in containers)
    return Rules(
        of_nodes=expressions + len(spec.node_selector or ()) + 2 * ports,
        resources=len(spec.requests),
        terms=len(terms) + len(spreads),
        of_pods=sum(map(_requirements, selectors)) + keys,
        of_namespaces=sum(map(_requirements, spaces)),
        tolerations=len(spec.tolerations or ()),
        others=values
        + named
        + sum(map(_values, (*selectors, *spaces)))
        + 4 * len(containers)
        + len(spec.scheduling_gates or ())
        + len(spec.resource_claims or ()),
    )


def _node_rules(spec: PodSpec) -> tuple[int, int]:
    """Counts the expressions and terms about nodes, and their values."""
    required, preferred = spec.node_affinity.required, spec.node_affinity.preferred
    terms: list[NodeSelectorTerm] = [*(required.node_selector_terms if required else ())]
    terms += (each.preference for each in preferred)
    expressions = [
        expression
        for term in terms
        for expression in (*(term.match_expressions or ()), *(term.match_fields or ()))
    ]
    values = sum(len(each.values or ()) for each in expressions)
    return len(terms) + len(expressions), values


def _requirements(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels or ()) + len(selector.match_expressions or ())


def _values(selector: LabelSelector | None) -> int:
    written = selector.match_expressions if selector is not None else None
    return sum(len(each.values or ()) for each in written or ())
