"""The metrics of groups of pods and of preemption: those of kube-scheduler 1.37, and our own."""

from __future__ import annotations

from moorage.framework.series import Kind, Level, Metric, exponential

_MILLISECOND = exponential(0.001, 2, 15)
_PREEMPTION = exponential(0.001, 2, 16)
_VICTIMS = exponential(1, 2, 11)

PODGROUP_ATTEMPTS = Metric(
    "scheduler_podgroup_schedule_attempts_total",
    Kind.COUNTER,
    Level.ALPHA,
    "Attempts to place a group of pods; the result is scheduled, unschedulable, error or "
    "waiting_on_preemption.",
    ("result", "profile"),
)
PODGROUP_ATTEMPT_DURATION = Metric(
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
    Kind.HISTOGRAM,
    Level.ALPHA,
    "How long an attempt to place a group of pods took.",
    ("result", "profile"),
    _MILLISECOND,
)
PODGROUP_ALGORITHM_DURATION = Metric(
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    Kind.HISTOGRAM,
    Level.ALPHA,
    "How long the decision about a group of pods took.",
    (),
    _MILLISECOND,
)
QUEUED_ENTITIES = Metric(
    "scheduler_queued_entities",
    Kind.GAUGE,
    Level.ALPHA,
    "Entries of the queue by queue and type: a pod that is in no group, or a podgroup.",
    ("queue", "type"),
)
QUEUE_INCOMING_ENTITIES = Metric(
    "scheduler_queue_incoming_entities_total",
    Kind.COUNTER,
    Level.ALPHA,
    "Entries that came into a queue, by queue, by what brought them there, and by type.",
    ("queue", "event", "type"),
)
GENERATED_PLACEMENTS = Metric(
    "scheduler_generated_placements_total",
    Kind.COUNTER,
    Level.ALPHA,
    "Domains that were considered for groups of pods.",
    ("profile",),
)
PLACEMENT_EVALUATIONS = Metric(
    "scheduler_placement_evaluations_total",
    Kind.COUNTER,
    Level.ALPHA,
    "Domains that were tried or counted for groups of pods; the result is feasible or infeasible.",
    ("result", "profile"),
)
PLACEMENT_DURATION = Metric(
    "scheduler_placement_evaluation_duration_seconds",
    Kind.HISTOGRAM,
    Level.ALPHA,
    "How long it took to try a group of pods in one domain. Domains that are counted take none.",
    ("result", "profile"),
    _MILLISECOND,
)
WORKLOAD_PREEMPTIONS = Metric(
    "scheduler_workload_preemption_attempts_total",
    Kind.COUNTER,
    Level.ALPHA,
    "Attempts to find victims for a group of pods.",
    ("result",),
)
WORKLOAD_VICTIMS = Metric(
    "scheduler_workload_preemption_victims",
    Kind.HISTOGRAM,
    Level.ALPHA,
    "How many victims a preemption for a group of pods had.",
    (),
    _VICTIMS,
)
WORKLOAD_DISRUPTIONS = Metric(
    "scheduler_preemption_workload_disruptions",
    Kind.HISTOGRAM,
    Level.ALPHA,
    "How many victims were of groups: a group that is evicted whole counts once.",
    ("preemptor",),
    _VICTIMS,
)
PREEMPTION_EVALUATION = Metric(
    "scheduler_preemption_evaluation_duration_seconds",
    Kind.HISTOGRAM,
    Level.ALPHA,
    "How long it took to look for victims, for a pod or a podgroup.",
    ("preemptor", "result"),
    _PREEMPTION,
)
PREEMPTION_EXECUTION = Metric(
    "scheduler_preemption_execution_duration_seconds",
    Kind.HISTOGRAM,
    Level.ALPHA,
    "From the decision to evict victims until all were asked to go (success), or one could not "
    "be (error).",
    ("preemptor", "result"),
    _PREEMPTION,
)
BUDGET_VIOLATIONS = Metric(
    "scheduler_preemption_pdb_violations_total",
    Kind.COUNTER,
    Level.ALPHA,
    "Victims that were more than a disruption budget allows.",
    ("preemptor",),
)
GANGS_PLACED = Metric(
    "moorage_gangs_placed_total",
    Kind.COUNTER,
    Level.OURS,
    "Groups that were placed, by how: in_order (kube-scheduler's), by preferred levels, reordered "
    "or searched.",
    ("profile", "way"),
)
KEPT_NODES = Metric(
    "moorage_gang_kept_nodes",
    Kind.GAUGE,
    Level.OURS,
    "Nodes whose room is kept for a gang that starves.",
)

GROUP_METRICS: tuple[Metric, ...] = (
    PODGROUP_ATTEMPTS,
    PODGROUP_ATTEMPT_DURATION,
    PODGROUP_ALGORITHM_DURATION,
    QUEUED_ENTITIES,
    QUEUE_INCOMING_ENTITIES,
    GENERATED_PLACEMENTS,
    PLACEMENT_EVALUATIONS,
    PLACEMENT_DURATION,
    WORKLOAD_PREEMPTIONS,
    WORKLOAD_VICTIMS,
    WORKLOAD_DISRUPTIONS,
    PREEMPTION_EVALUATION,
    PREEMPTION_EXECUTION,
    BUDGET_VIOLATIONS,
    GANGS_PLACED,
    KEPT_NODES,
)
