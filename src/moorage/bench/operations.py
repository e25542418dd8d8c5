"""The operations of scheduler_perf's language. A field `…Param` names a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from moorage.config.duration import Duration


class BaseOperation(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    tag_field="opcode",
):
    """An operation; `opcode` names it."""

    @property
    def problem(self) -> str | None:
        """What is wrong with it, if something is: field and message."""
        return None

    @property
    def collects(self) -> bool:
        """Whether figures are reported once it is over."""
        return False


class CountOperation(BaseOperation, frozen=True, kw_only=True):
    """An operation that makes so many objects."""

    count: int = 0
    count_param: str = ""

    @property
    def problem(self) -> str | None:
        return f"count: must not be negative, got {self.count}" if self.count < 0 else None


class TemplateOperation(CountOperation, frozen=True, kw_only=True):
    """An operation that makes them of a template."""

    template_params: Mapping[str, Any] = {}

    def template_values(self, number: int) -> dict[str, Any]:
        """Returns what the template of the object with this number is given."""
        return {**self.template_params, "Index": number, "Count": self.count}


class CreateResourceDriver(BaseOperation, frozen=True, kw_only=True, tag="createResourceDriver"):
    """Publishes so many devices on each of the nodes whose names match a pattern."""

    driver_name: str
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""
    nodes: str = ""

    @property
    def problem(self) -> str | None:
        count = self.max_claims_per_node
        return f"maxClaimsPerNode: must not be negative, got {count}" if count < 0 else None


class CreateResourceClaims(
    TemplateOperation, frozen=True, kw_only=True, tag="createResourceClaims"
):
    """Adds claims to devices."""

    namespace: str
    template_path: str


class AllocResourceClaims(BaseOperation, frozen=True, kw_only=True, tag="allocResourceClaims"):
    """Gives devices of random nodes to all claims of a namespace."""

    namespace: str = ""


class CreatePodGroups(TemplateOperation, frozen=True, kw_only=True, tag="createPodGroups"):
    """Adds pod groups."""

    namespace: str
    template_path: str


class WaitForPodGroups(CountOperation, frozen=True, kw_only=True, tag="waitForPodGroups"):
    """Waits for pod groups to be known."""

    namespace: str


_CHURN_MILLISECONDS = 500


class NodeAllocatableStrategy(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """What nodes have beside their template, and what CSI drivers can attach to them."""

    node_allocatable: Mapping[str, str | int] = {}
    csi_node_allocatable: Mapping[str, Mapping[str, int]] = {}
    migrated_plugins: tuple[str, ...] = ()


class LabelNodePrepareStrategy(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A label whose values nodes get in turn."""

    label_key: str
    label_values: tuple[str, ...]


class UniqueNodeLabelStrategy(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A label with another value for each node."""

    label_key: str


class CreateNodes(TemplateOperation, frozen=True, kw_only=True, tag="createNodes"):
    """Adds nodes, from a template or plain ones."""

    node_template_path: str | None = None
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None

    @property
    def problem(self) -> str | None:
        strategies = (
            self.node_allocatable_strategy,
            self.label_node_prepare_strategy,
            self.unique_node_label_strategy,
        )
        if sum(each is not None for each in strategies) > 1:
            return "at most one strategy can be given"
        return super().problem


class CreateNamespaces(CountOperation, frozen=True, kw_only=True, tag="createNamespaces"):
    """Adds namespaces `<prefix>-0` and so on."""

    prefix: str
    namespace_template_path: str | None = None


class CreatePods(TemplateOperation, frozen=True, kw_only=True, tag="createPods"):
    """Adds pods, and waits until they are placed, unless it skips the wait."""

    count_multiplier_param: str = ""
    namespace: str | None = None
    pod_template_path: str | None = None
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    steady_state: bool = False
    steady_state_param: str = ""
    duration: Duration = Duration(0)
    duration_param: str = ""
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None
    #: So many pods in a row have the same label, others a different one; 0 labels none.
    signature_batch_size: int = 0
    signature_batch_size_param: str = ""

    @property
    def collects(self) -> bool:
        return self.collect_metrics

    @property
    def problem(self) -> str | None:
        if self.collect_metrics and self.skip_wait_to_completion:
            return "collectMetrics and skipWaitToCompletion exclude each other"
        if self.steady_state and self.skip_wait_to_completion:
            return "steadyState and skipWaitToCompletion exclude each other"
        if self.steady_state and self.duration <= 0 and not self.duration_param:
            return "duration: is required in a steady state"
        if self.signature_batch_size < 0:
            return f"signatureBatchSize: must not be negative, got {self.signature_batch_size}"
        volume, claim = self.persistent_volume_template_path, self.claim_template_path
        if (volume is None) != (claim is None):
            return "persistentVolumeTemplatePath and persistentVolumeClaimTemplatePath go together"
        return super().problem

    @property
    def claim_template_path(self) -> str | None:
        return self.persistent_volume_claim_template_path


class CreatePodSets(CountOperation, frozen=True, kw_only=True, tag="createPodSets"):
    """Adds the same pods in each of the namespaces `<prefix>-0` and so on."""

    namespace_prefix: str
    create_pods_op: CreatePods

    @property
    def collects(self) -> bool:
        return self.create_pods_op.collect_metrics

    @property
    def problem(self) -> str | None:
        inner = self.create_pods_op.problem
        return super().problem or (inner and f"createPodsOp: {inner}")


class DeletePods(BaseOperation, frozen=True, kw_only=True, tag="deletePods"):
    """Deletes pods of a namespace, all at once or at a rate."""

    namespace: str
    label_selector: Mapping[str, str] = {}
    delete_pods_per_second: int = 0
    skip_wait_to_completion: bool = False

    @property
    def problem(self) -> str | None:
        if self.delete_pods_per_second < 0:
            return "deletePodsPerSecond: must not be negative"
        return None


class CreateAny(TemplateOperation, frozen=True, kw_only=True, tag="createAny"):
    """Adds objects of any kind."""

    template_path: str
    namespace: str = ""
    count: int = 1


class UpdateAny(TemplateOperation, frozen=True, kw_only=True, tag="updateAny"):
    """Replaces objects by what a template says, all at once or at a rate."""

    template_path: str
    namespace: str = ""
    count: int = 1
    update_per_second: int = 0
    subresources: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        if self.update_per_second < 0:
            return "updatePerSecond: must not be negative"
        return super().problem


class Churn(BaseOperation, frozen=True, kw_only=True, tag="churn"):
    """Adds, or adds and deletes, objects until the workload ends."""

    mode: Literal["create", "recreate"]
    template_paths: tuple[str, ...]
    number: int = 0
    #: 0 is as if it were not given.
    interval_milliseconds: int = 0
    namespace: str | None = None

    @property
    def interval_seconds(self) -> float:
        return (self.interval_milliseconds or _CHURN_MILLISECONDS) / 1000

    @property
    def problem(self) -> str | None:
        if self.number < 0 or (self.number == 0 and self.mode == "recreate"):
            return f"number: must be positive in mode {self.mode}, got {self.number}"
        if self.interval_milliseconds < 0:
            return f"intervalMilliseconds: must not be negative, got {self.interval_milliseconds}"
        return None if self.template_paths else "templatePaths: must name a template"


class Barrier(BaseOperation, frozen=True, kw_only=True, tag="barrier"):
    """Waits for pods that were not waited for when they were made."""

    namespaces: tuple[str, ...] = ()
    label_selector: Mapping[str, str] = {}
    stage_requirement: Literal["Scheduled", "Attempted"] = "Scheduled"


class Sleep(BaseOperation, frozen=True, kw_only=True, tag="sleep"):
    """Lets time pass."""

    duration: Duration = Duration(0)
    duration_param: str = ""


class StartCollectingMetrics(
    BaseOperation, frozen=True, kw_only=True, tag="startCollectingMetrics"
):
    """Begins to measure pods of some namespaces."""

    namespaces: tuple[str, ...]
    name: str = ""
    label_selector: Mapping[str, str] = {}

    @property
    def problem(self) -> str | None:
        return None if self.namespaces else "namespaces: must not be empty"


class StopCollectingMetrics(BaseOperation, frozen=True, kw_only=True, tag="stopCollectingMetrics"):
    """Ends a measurement."""

    @property
    def collects(self) -> bool:
        return True


#: Read by its opcode.
Operation = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | DeletePods
    | CreateAny
    | UpdateAny
    | Churn
    | Barrier
    | Sleep
    | StartCollectingMetrics
    | StopCollectingMetrics
    | CreateResourceDriver
    | CreateResourceClaims
    | AllocResourceClaims
    | CreatePodGroups
    | WaitForPodGroups
)
