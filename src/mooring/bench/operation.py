"""What all operations of scheduler_perf's language have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


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


class Counted(BaseOperation, frozen=True, kw_only=True):
    """An operation that makes so many objects."""

    count: int = 0
    count_param: str = ""

    @property
    def problem(self) -> str | None:
        return f"count: must not be negative, got {self.count}" if self.count < 0 else None


class Templated(Counted, frozen=True, kw_only=True):
    """An operation that makes them of a template."""

    template_params: Mapping[str, Any] = {}

    def given(self, number: int) -> dict[str, Any]:
        """What the template of the object with this number is given."""
        return {**self.template_params, "Index": number, "Count": self.count}
