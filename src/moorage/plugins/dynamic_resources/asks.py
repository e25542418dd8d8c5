"""The requests of claims, compiled for the search: classes are looked up, devices judged once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from enum import Enum, auto
from functools import cached_property

from moorage.cel import DeviceReads
from moorage.cluster.devices.device_classes import DeviceClasses
from moorage.cluster.devices.models import DeviceModel, PoolShape
from moorage.cluster.devices.taint_rules import RuleTaints
from moorage.config import FeatureGates
from moorage.config.kubernetes_versions import KubernetesVersion
from moorage.objects.device import DeviceClass, DeviceSelector, DeviceTaint
from moorage.objects.resource_claim import (
    ALL_DEVICES,
    EXACT_COUNT,
    ClaimSpec,
    DeviceAsk,
    DeviceConstraint,
    DeviceRequest,
    DeviceToleration,
)

from .capacities import CapacityRules, OddCapacityError, amounts_of
from .selectors import SelectorAnswers, SelectorProblem, look_of

#: Stands for the name of the claim in an error, because equal claims share a result.
CLAIM = "\0claim\0"

#: Stands for the name of the device in an error, because equal devices share a judgement.
DEVICE = "\0device\0"

#: Stands for its name without driver and pool.
DEVICE_NAME = "\0device name\0"

# A hint of kube-scheduler, and the errors to which it is added.
_MISSING_KEY = "no such key:"
_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields"
)


class Judgement(Enum):
    """Whether a request accepts a device, no matter whether the device is in use."""

    NO = auto()
    YES = auto()
    #: The device suits, but has a taint that the request does not tolerate.
    TAINTED = auto()


class SearchError(Exception):
    """An error that ends the whole attempt. `CLAIM` in the text stands for the claim's name."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class CompiledAsk:
    """One way to satisfy a request."""

    def __init__(
        self,
        request: DeviceRequest,
        ask: DeviceAsk,
        name: str,
        device_class: DeviceClass | None,
        answers: SelectorAnswers,
        gates: FeatureGates,
    ) -> None:
        #: The name of the request, and the name of this alternative in results.
        self.request_name, self.name = request.name, name
        self.own_name = name.rpartition("/")[2]
        self.ask = ask
        self.device_class = device_class
        self.is_admin = bool(ask.admin_access)
        self.wants_all = ask.allocation_mode == ALL_DEVICES
        self.count = ask.count
        self.amounts = dict((ask.capacity.requests if ask.capacity else None) or {})
        self._answers = answers
        self._names_device = gates.version.names_failing_device
        self.capacity_rules = CapacityRules(
            has_fractions=gates["DRAFractionalCapacityRange"],
            refuses_odd=gates.version.refuses_odd_capacities,
        )
        #: The judgements of devices, by what its expressions read of them.
        self._judged: dict[Hashable, Judgement] = {}
        self._masks: dict[PoolShape, tuple[int, int]] = {}
        #: The first taint of some rules that it does not tolerate.
        self._untolerated: dict[RuleTaints, DeviceTaint | None] = {}

    def problem(self) -> str:
        """Returns why no device can ever be found for it; empty if nothing is wrong."""
        what = f"claim {CLAIM}, request {self.own_name}"
        for at, selector in enumerate(self.ask.selectors or ()):
            if selector.cel is None:
                return f"{what}, selector #{at}: CEL expression empty (unsupported selector type?)"
        if not self.ask.device_class_name:
            return f"{what}: missing device class name (unsupported request type?)"
        if self.device_class is None:
            name = self.ask.device_class_name
            return (
                f"{what}: could not retrieve device class {name}: "
                f'deviceclass.resource.k8s.io "{name}" not found'
            )
        mode = self.ask.allocation_mode
        if mode not in (EXACT_COUNT, ALL_DEVICES):
            return f"{what}: unsupported count mode {mode}"
        return ""

    def judge(self, model: DeviceModel) -> Judgement:
        """Judges a device by selectors, nodes, capacity and taints, in this order.

        Raises SearchError.
        """
        look = model.rest, look_of(model.content, self._reads)
        known = self._judged.get(look)
        if known is None:
            known = self._judged[look] = self._judge(model)
        return known

    @cached_property
    def _reads(self) -> DeviceReads | None:
        """Returns what its and its class's expressions read; None if that may be anything."""
        own = self.ask.selectors or ()
        selectors = own if self.device_class is None else (*self.device_class.selectors, *own)
        return self._answers.join_reads(
            each.cel.expression if each.cel else "" for each in selectors
        )

    def _judge(self, model: DeviceModel) -> Judgement:
        if not self._is_selected(model) or not model.place.is_here:
            return Judgement.NO
        try:
            if amounts_of(self.amounts, model, {}, self.capacity_rules) is None:
                return Judgement.NO
        except OddCapacityError as error:
            device = DEVICE_NAME if self.wants_all else DEVICE
            what = f"claim {CLAIM}, request {self.own_name}: checking capacity for device {device}"
            raise SearchError(f"{what}: {error}") from None
        return Judgement.YES if self.find_untolerated(model) is None else Judgement.TAINTED

    def _is_selected(self, model: DeviceModel) -> bool:
        assert self.device_class is not None, "a request without a class is never searched for"
        return self._all_select(
            f"class {self.device_class.name}", self.device_class.selectors, model
        ) and self._all_select(f"claim {CLAIM}", self.ask.selectors or (), model)

    def _all_select(
        self, whose: str, selectors: Sequence[DeviceSelector], model: DeviceModel
    ) -> bool:
        for at, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel else ""
            try:
                if not self._answers.matches(expression, model.content):
                    return False
            except SelectorProblem as problem:
                what = f"{whose}: selector #{at}"
                if self._names_device and not problem.is_compilation:
                    what += f" on device {DEVICE}"
                    if _MISSING_KEY in problem.text:
                        raise SearchError(f"{what}: {problem.text}{_HINT}") from None
                raise SearchError(f"{what}: {problem.text}") from None
        return True

    def find_untolerated(self, model: DeviceModel) -> DeviceTaint | None:
        """Returns a taint of a device that it does not tolerate; None if there is none."""
        for taints in model.rule_taints:
            # Many devices can have the taints of many rules.
            if taints not in self._untolerated:
                self._untolerated[taints] = self._find_untolerated(taints.taints)
        of_rules = (self._untolerated[taints] for taints in model.rule_taints)
        return self._find_untolerated(model.taints) or next(filter(None, of_rules), None)

    def _find_untolerated(self, taints: Sequence[DeviceTaint]) -> DeviceTaint | None:
        tolerations = self.ask.tolerations or ()
        for taint in taints:
            if not any(_tolerates(each, taint) for each in tolerations):
                return taint
        return None

    def masks(self, shape: PoolShape) -> tuple[int, int]:
        """Returns the devices that suit, and those for which an expression fails, as bits."""
        known = self._masks.get(shape)
        if known is None:
            self._answers.begin(len(shape.models))
            good = broken = 0
            for at, model in enumerate(shape.models):
                try:
                    good |= (self.judge(model) is Judgement.YES) << at
                except SearchError:
                    broken |= 1 << at
            known = self._masks[shape] = good, broken
        return known

    def forget(self) -> None:
        """Forgets all judgements of devices."""
        self._judged.clear()
        self._masks.clear()
        self._untolerated.clear()


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


class CompiledRequest:
    """A request with its alternatives, the best first. Most requests have one."""

    __slots__ = ("asks", "has_alternatives")

    def __init__(self, asks: tuple[CompiledAsk, ...], has_alternatives: bool) -> None:
        self.asks = asks
        self.has_alternatives = has_alternatives


class CompiledClaim:
    """All requests of a claim, and the constraints on its devices."""

    def __init__(
        self,
        spec: ClaimSpec,
        classes: DeviceClasses,
        answers: SelectorAnswers,
        gates: FeatureGates,
    ) -> None:
        self.spec = spec
        self.gates = gates
        self.requests = tuple(_compile(each, classes, answers, gates) for each in spec.requests)
        self.constraints: tuple[DeviceConstraint, ...] = spec.constraints
        #: Whether the claim or one of its classes configures the devices.
        self.is_configured = bool(spec.config) or any(
            ask.device_class is not None and ask.device_class.config for ask in self.asks()
        )
        #: Whether every request is valid, has no alternatives, and wants a fixed number of devices
        #: without admin access.
        self.is_regular = all(
            not request.has_alternatives and not (ask.is_admin or ask.wants_all or ask.problem())
            for request in self.requests
            for ask in request.asks
        )
        #: Whether the first suitable devices are the right ones, if there are enough.
        self.is_plain = self.is_regular and not self.constraints

    @property
    def version(self) -> KubernetesVersion:
        """Returns the version of Kubernetes whose rules are followed."""
        return self.gates.version

    def asks(self) -> Iterator[CompiledAsk]:
        for request in self.requests:
            yield from request.asks


def _compile(
    request: DeviceRequest,
    classes: DeviceClasses,
    answers: SelectorAnswers,
    gates: FeatureGates,
) -> CompiledRequest:
    if request.exactly is not None:
        found = classes.get(request.exactly.device_class_name)
        ask = CompiledAsk(request, request.exactly, request.name, found, answers, gates)
        return CompiledRequest((ask,), False)
    alternatives = request.first_available or ()
    return CompiledRequest(
        tuple(
            CompiledAsk(
                request,
                each,
                f"{request.name}/{each.name}",
                classes.get(each.device_class_name),
                answers,
                gates,
            )
            for each in alternatives
        ),
        True,
    )
