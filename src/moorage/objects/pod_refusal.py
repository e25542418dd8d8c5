"""Why a kubelet refuses a pod that is bound to its node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .pod import Pod


@dataclass(frozen=True, slots=True)
class PodRefusal:
    """Why a pod is not let in, in the two texts that a pod's status has for it."""

    reason: str
    message: str


#: Returns why a pod cannot run beside those that are present; None admits it.
Admit = Callable[[Pod, Iterable[Pod]], PodRefusal | None]
