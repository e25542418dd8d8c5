"""All metrics, as kube-scheduler has them: name, help with stability first, buckets, labels."""

from __future__ import annotations

from moorage.framework.series import Bounds, Kind, Metric, exponential

_MILLISECOND = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
# kube-scheduler's end at 22 ms. An objective of 100 ms needs buckets on both sides of it.
_PLUGIN_EXECUTION = exponential(0.00001, 1.5, 26)
_HINT = exponential(0.00001, 2, 12)
_LONG = exponential(0.01, 2, 20)
_PREEMPTION = exponential(0.001, 2, 16)
_VICTIMS = exponential(1, 2, 11)
_REQUEST: Bounds = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

METRICS: list[Metric] = []


def _counter(name: str, help_text: str, labels: str = "") -> Metric:
    return _declare(name, Kind.COUNTER, help_text, labels)


def _gauge(name: str, help_text: str, labels: str = "") -> Metric:
    return _declare(name, Kind.GAUGE, help_text, labels)


def _histogram(name: str, help_text: str, buckets: Bounds, labels: str = "") -> Metric:
    return _declare(name, Kind.HISTOGRAM, help_text, labels, buckets)


def _declare(name: str, kind: Kind, help_text: str, labels: str, buckets: Bounds = ()) -> Metric:
    metric = Metric(name, kind, help_text, tuple(labels.split()), buckets)
    METRICS.append(metric)
    return metric


SCHEDULE_ATTEMPTS = _counter(
    "scheduler_schedule_attempts_total",
    "[STABLE] Attempts to schedule pods by result: scheduled, unschedulable (no node was "
    "found) or error.",
    "result profile",
)
SCHEDULING_ATTEMPT_DURATION = _histogram(
    "scheduler_scheduling_attempt_duration_seconds",
    "[STABLE] How long attempts took, from the queue to the binding or the failure.",
    _MILLISECOND,
    "result profile",
)
SCHEDULING_ALGORITHM_DURATION = _histogram(
    "scheduler_scheduling_algorithm_duration_seconds",
    "[ALPHA] How long it took to find a node, or to look for one and for a remedy in vain.",
    _MILLISECOND,
)
PREEMPTION_VICTIMS = _histogram(
    "scheduler_preemption_victims",
    "[STABLE] How many victims a preemption had.",
    exponential(1, 2, 7),
)
PREEMPTION_ATTEMPTS = _counter(
    "scheduler_preemption_attempts_total", "[STABLE] Attempts to find a remedy by preemption."
)
PENDING_PODS = _gauge(
    "scheduler_pending_pods",
    "[STABLE] Waiting pods by queue: active, backoff, unschedulable (tried in vain) or gated "
    "(not tried).",
    "queue",
)
POD_SCHEDULING_ATTEMPTS = _histogram(
    "scheduler_pod_scheduling_attempts",
    "[STABLE] How many attempts it took to schedule a pod.",
    exponential(1, 2, 5),
)
POD_SCHEDULING_SLI_DURATION = _histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "[BETA] From when a pod was first let into the queue until it was bound, over all its "
    "attempts.",
    _LONG,
    "attempts",
)
EXTENSION_POINT_DURATION = _histogram(
    "scheduler_framework_extension_point_duration_seconds",
    "[STABLE] How long all plugins of an extension point took together.",
    _POINT,
    "extension_point status profile",
)
PLUGIN_EXECUTION_DURATION = _histogram(
    "scheduler_plugin_execution_duration_seconds",
    "[ALPHA] How long one plugin took at an extension point, in every tenth attempt.",
    _PLUGIN_EXECUTION,
    "plugin extension_point status",
)
PLUGIN_EVALUATION = _counter(
    "scheduler_plugin_evaluation_total",
    "[BETA] How often a plugin was evaluated at an extension point.",
    "plugin extension_point profile",
)
QUEUE_INCOMING_PODS = _counter(
    "scheduler_queue_incoming_pods_total",
    "[STABLE] Pods that came into a queue, by queue and by what brought them there.",
    "queue event",
)
PERMIT_WAIT_DURATION = _histogram(
    "scheduler_permit_wait_duration_seconds",
    "[BETA] How long pods waited for permits.",
    _MILLISECOND,
    "result",
)
UNSCHEDULABLE_PODS = _gauge(
    "scheduler_unschedulable_pods",
    "[BETA] Waiting pods that a plugin rejected. A pod counts for each plugin that did.",
    "plugin profile",
)
EVENT_HANDLING_DURATION = _histogram(
    "scheduler_event_handling_duration_seconds",
    "[ALPHA] How long it took to take in an event.",
    _POINT,
    "event",
)
QUEUEING_HINT_DURATION = _histogram(
    "scheduler_queueing_hint_execution_duration_seconds",
    "[ALPHA] How long a plugin took to say whether an event concerns a waiting pod.",
    _PLUGIN,
    "plugin event hint",
)
INFLIGHT_EVENTS = _gauge(
    "scheduler_inflight_events",
    "[ALPHA] Events that are remembered for pods being scheduled; PodPopped is the number of "
    "such pods.",
    "event",
)
CACHE_SIZE = _gauge(
    "scheduler_cache_size", "[ALPHA] Nodes, pods and assumed pods that are known.", "type"
)
SCHEDULED_AFTER_FLUSH = _counter(
    "scheduler_pod_scheduled_after_flush_total",
    "[ALPHA] Pods that were scheduled after being woken only because they had waited for too long.",
)
BATCH_ATTEMPTS = _counter(
    "scheduler_batch_attempts_total",
    "[ALPHA] Decisions by whether the answers for like pods were used: hint_used or no_hint.",
    "profile result",
)
BATCH_CACHE_FLUSHED = _counter(
    "scheduler_batch_cache_flushed_total",
    "[ALPHA] How often answers for like pods had to be found anew, by reason.",
    "profile reason",
)
GET_NODE_HINT_DURATION = _histogram(
    "scheduler_get_node_hint_duration_seconds",
    "[ALPHA] How long decisions took with the answers for like pods (hint), and without (no_hint).",
    _HINT,
    "hinted profile",
)
STORE_RESULTS_DURATION = _histogram(
    "scheduler_store_schedule_results_duration_seconds",
    "[ALPHA] How long it took to find and keep the answers for the first of many like pods.",
    _HINT,
    "profile",
)
LEADER = _gauge(
    "leader_election_master_status", "[ALPHA] 1 while this process holds the lease.", "name"
)
REQUESTS = _counter(
    "rest_client_requests_total",
    "[ALPHA] Requests to the API server. The code is <error> where there was no answer.",
    "code method host",
)
REQUEST_DURATION = _histogram(
    "rest_client_request_duration_seconds",
    "[ALPHA] How long requests to the API server took.",
    _REQUEST,
    "verb host",
)
FEATURE_ENABLED = _gauge(
    "kubernetes_feature_enabled", "[BETA] 1 where a feature gate is on.", "name stage"
)
LEFT_OUT = _counter(
    "moorage_unreadable_objects_total",
    "How often an object of a kind could not be read and was left out.",
    "kind",
)
ABSENT_KIND = _gauge(
    "moorage_absent_kind",
    "1 for a kind that counts as empty because the API server does not have it or refuses it.",
    "kind",
)
DROPPED_EVENTS = _counter(
    "moorage_dropped_events_total",
    "Events that were not written, because they came faster than the API server took them.",
)
CLAIM_CREATES = _counter(
    "scheduler_resourceclaim_creates_total",
    "[ALPHA] Requests to make a claim for the extended resources of a pod, by status: success"
    " or failure.",
    "status",
)
DEVICES_WAITED = _counter(
    "scheduler_dra_bindingconditions_allocations_total",
    "[ALPHA] Devices that drivers had to make ready, by how that ended: success, failed, "
    "timeout or error.",
    "profile driver status",
)
DEVICE_WAIT_DURATION = _histogram(
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    "[ALPHA] How long it took until drivers had made devices ready, or would not any more.",
    exponential(0.1, 2, 14),
    "profile driver status",
)
EXTENDER_CALLS = _counter(
    "moorage_extender_calls_total",
    "Calls of extenders, by URL prefix, verb and result: success or error.",
    "extender verb result",
)
EXTENDER_DURATION = _histogram(
    "moorage_extender_duration_seconds",
    "How long extenders took to answer, or to fail.",
    _MILLISECOND,
    "extender verb",
)
CAUGHT_ERRORS = _counter(
    "moorage_caught_errors_total",
    "Exceptions that left out an object, ignored an outcome or failed an attempt.",
    "source",
)
STALL = _gauge(
    "moorage_deciding_stall_seconds",
    "Seconds for which the deciding thread has been busy with one decision.",
)
TOO_COSTLY_PODS = _counter(
    "moorage_too_costly_pods_total",
    "Attempts to schedule pods whose rules need more work than a decision may take.",
    "profile",
)
UNSIGNED_PODS = _counter(
    "moorage_unsigned_pods_total",
    "Decisions without the answers for like pods because of a plugin: it signs no pods "
    "(silent), not this one (unsignable), or raised something (broken).",
    "profile plugin reason",
)
LIKE_PODS = _counter(
    "moorage_like_pods_total",
    "Decisions by whether answers could be shared, also while reuse is off: the pod was like "
    "one before (alike), the first of its kind (first), or not signed (unsigned).",
    "profile result",
)
TOLD_APART = _counter(
    "moorage_pods_told_apart_total",
    "Decisions for pods unlike the last one of the same owner, by each plugin that told them "
    "apart.",
    "profile plugin",
)
CLASSES = _gauge("moorage_classes", "Classes of like pods whose answers are kept.", "profile")
CLASS_BYTES = _gauge(
    "moorage_class_bytes", "Bytes that the answers for like pods take, at most.", "profile"
)
EXTENDED_RESOURCE = _gauge(
    "moorage_extended_resource",
    "Figures of an extended resource, such as its capacity and what is used, over all nodes.",
    "resource figure",
)
BUILD_INFO = _gauge("moorage_build_info", "Always 1.", "version python_version")
PODGROUP_ATTEMPTS = _counter(
    "scheduler_podgroup_schedule_attempts_total",
    "[ALPHA] Attempts to place a group of pods; the result is scheduled, unschedulable, error"
    " or waiting_on_preemption.",
    "result profile",
)
PODGROUP_ATTEMPT_DURATION = _histogram(
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
    "[ALPHA] How long an attempt to place a group of pods took.",
    _MILLISECOND,
    "result profile",
)
PODGROUP_ALGORITHM_DURATION = _histogram(
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    "[ALPHA] How long the decision about a group of pods took.",
    _MILLISECOND,
)
QUEUED_ENTITIES = _gauge(
    "scheduler_queued_entities",
    "[ALPHA] Entries of the queue by queue and type: a pod that is in no group, or a podgroup.",
    "queue type",
)
QUEUE_INCOMING_ENTITIES = _counter(
    "scheduler_queue_incoming_entities_total",
    "[ALPHA] Entries that came into a queue, by queue, by what brought them there, and by type.",
    "queue event type",
)
GENERATED_PLACEMENTS = _counter(
    "scheduler_generated_placements_total",
    "[ALPHA] Domains that were considered for groups of pods.",
    "profile",
)
PLACEMENT_EVALUATIONS = _counter(
    "scheduler_placement_evaluations_total",
    "[ALPHA] Domains that were tried or counted for groups of pods; the result is feasible or"
    " infeasible.",
    "result profile",
)
PLACEMENT_DURATION = _histogram(
    "scheduler_placement_evaluation_duration_seconds",
    "[ALPHA] How long it took to try a group of pods in one domain. Domains that are counted "
    "take none.",
    _MILLISECOND,
    "result profile",
)
WORKLOAD_PREEMPTIONS = _counter(
    "scheduler_workload_preemption_attempts_total",
    "[ALPHA] Attempts to find victims for a group of pods.",
    "result",
)
WORKLOAD_VICTIMS = _histogram(
    "scheduler_workload_preemption_victims",
    "[ALPHA] How many victims a preemption for a group of pods had.",
    _VICTIMS,
)
WORKLOAD_DISRUPTIONS = _histogram(
    "scheduler_preemption_workload_disruptions",
    "[ALPHA] How many victims were of groups: a group that is evicted whole counts once.",
    _VICTIMS,
    "preemptor",
)
PREEMPTION_EVALUATION = _histogram(
    "scheduler_preemption_evaluation_duration_seconds",
    "[ALPHA] How long it took to look for victims, for a pod or a podgroup.",
    _PREEMPTION,
    "preemptor result",
)
PREEMPTION_EXECUTION = _histogram(
    "scheduler_preemption_execution_duration_seconds",
    "[ALPHA] From the decision to evict victims until all were asked to go (success), or one "
    "could not be (error).",
    _PREEMPTION,
    "preemptor result",
)
BUDGET_VIOLATIONS = _counter(
    "scheduler_preemption_pdb_violations_total",
    "[ALPHA] Victims that were more than a disruption budget allows.",
    "preemptor",
)

_NO_DISPATCHER = "API calls are actions whose outcome is an event; see rest_client_*"
_NO_VOLUME_STAGES = "volumes are decided with the pod; failures are attempts with result error"

#: kube-scheduler's metrics that are not exposed, and why.
ABSENT: dict[str, str] = {
    "scheduler_goroutines": "there are none: deciding is one thread",
    "scheduler_preemption_goroutines_duration_seconds": "evictions are actions, not goroutines",
    "scheduler_preemption_goroutines_execution_total": "evictions are actions, not goroutines",
    "scheduler_async_api_call_execution_total": _NO_DISPATCHER,
    "scheduler_async_api_call_execution_duration_seconds": _NO_DISPATCHER,
    "scheduler_pending_async_api_calls": _NO_DISPATCHER,
    "scheduler_volume_scheduling_stage_error_total": _NO_VOLUME_STAGES,
    "scheduler_volume_binder_cache_requests_total": _NO_VOLUME_STAGES,
}
