"""How an object is put together: which of its lists have keys, and which parts are one piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mooring.embedded.schema import Field, Type, struct


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a value. Without a type, objects have fields and lists are one piece."""

    type: Type | None = None
    field: Field | None = None

    @property
    def is_atomic(self) -> bool:
        """Whether the value is owned and replaced as a whole."""
        if self.field is not None and self.field.atomic:
            return True
        kind = self.type
        if kind is None or kind.is_list or kind.is_map:
            return False
        return "." in kind.name and struct(kind.name).atomic

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that tell the items of a list apart; none if it is not such a list."""
        return self.field.keys if self.field is not None else ()

    @property
    def is_set(self) -> bool:
        return self.field is not None and self.field.is_set

    def child(self, name: str) -> Shape:
        """The shape of a field, or of a value of a map."""
        kind = self.type
        if kind is None:
            return Shape()
        if kind.is_map:
            return Shape(kind.of)
        if kind.is_list or "." not in kind.name:
            return Shape()
        field = struct(kind.name).fields.get(name)
        return Shape(field.type, field) if field else Shape()

    @property
    def item(self) -> Shape:
        """The shape of the items of a list."""
        return Shape(self.type.of) if self.type is not None and self.type.is_list else Shape()

    def key_of(self, item: dict[str, Any]) -> dict[str, Any]:
        """The values that tell an item of this list apart, defaults among them."""
        return {name: self._key(item, name) for name in sorted(self.keys)}

    def _key(self, item: dict[str, Any], name: str) -> Any:
        if item.get(name) is not None:
            return item[name]
        field = self.item.child(name).field
        return field.default if field else None


def shape_of(schema: str) -> Shape:
    """The shape of a kind; of a custom resource, what can be told from its values."""
    return Shape(Type(schema)) if schema else Shape()
