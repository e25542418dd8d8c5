"""Reads the tree of an expression from the messages `cel.expr.CheckedExpr` and `ParsedExpr`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

from moorage.cel.tree import Call, Comprehension, Constant, ListOf, MapOf, Name, Node, Select
from moorage.cel.values import CelError, Uint

#: One field of a message: a number, or the bytes of a text or message.
_Field = int | bytes

_MESSAGE_OF_ANY, _EXPRESSION_OF_CHECKED, _EXPRESSION_OF_PARSED = 2, 4, 2


def read_tree(serialized: bytes) -> Node:
    """Returns the tree of a checked or a merely parsed expression."""
    fields = _fields(_message(_fields(serialized), _MESSAGE_OF_ANY))
    checked = _EXPRESSION_OF_CHECKED in fields
    return _node(_message(fields, _EXPRESSION_OF_CHECKED if checked else _EXPRESSION_OF_PARSED))


def _node(body: bytes) -> Node:
    fields = _fields(body)
    for number, read in _KINDS.items():
        if number in fields:
            return read(_message(fields, number))
    raise CelError("an expression of an unknown kind")


def _name(body: bytes) -> Node:
    return Name(_text(_fields(body), 1))


def _select(body: bytes) -> Node:
    fields = _fields(body)
    return Select(_node(_message(fields, 1)), _text(fields, 2), bool(_number(fields, 3)))


def _call(body: bytes) -> Node:
    fields = _fields(body)
    arguments = [*fields.get(1, ()), *fields.get(3, ())]
    return Call(_text(fields, 2), tuple(_node(_bytes(each)) for each in arguments))


def _list(body: bytes) -> Node:
    fields = _fields(body)
    optional = frozenset(place for packed in fields.get(2, ()) for place in _unpack(packed))
    return ListOf(tuple(_node(_bytes(each)) for each in fields.get(1, ())), optional)


def _map(body: bytes) -> Node:
    fields = _fields(body)
    if 1 in fields:
        raise CelError(f"the message {_text(fields, 1)} is not supported")
    entries = []
    for each in fields.get(2, ()):
        entry = _fields(_bytes(each))
        key, value = _node(_message(entry, 3)), _node(_message(entry, 4))
        entries.append((key, value, bool(_number(entry, 5))))
    return MapOf(tuple(entries))


def _comprehension(body: bytes) -> Node:
    fields = _fields(body)
    return Comprehension(
        item=_text(fields, 1),
        second_item=_text(fields, 8),
        items=_node(_message(fields, 2)),
        result_name=_text(fields, 3),
        start=_node(_message(fields, 4)),
        condition=_node(_message(fields, 5)),
        step=_node(_message(fields, 6)),
        result=_node(_message(fields, 7)),
    )


def _constant(body: bytes) -> Node:
    for number, values in _fields(body).items():
        value = values[0]
        match number:
            case 2:
                return Constant(bool(value))
            case 3:
                return Constant(_to_signed(_as_number(value)))
            case 4:
                return Constant(Uint(_as_number(value)))
            case 5:
                return Constant(struct.unpack("<d", _bytes(value))[0])
            case 6:
                return Constant(_bytes(value).decode())
            case 7:
                return Constant(_bytes(value))
    return Constant(None)


_KINDS: Mapping[int, Callable[[bytes], Node]] = {
    3: _constant,
    4: _name,
    5: _select,
    6: _call,
    7: _list,
    8: _map,
    9: _comprehension,
}


def _fields(body: bytes) -> dict[int, list[_Field]]:
    """Returns the fields of a message by number, in the wire format of protocol buffers."""
    fields: dict[int, list[_Field]] = {}
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        value: _Field
        match tag & 7:
            case 0:
                value, at = _varint(body, at)
            case 1:
                value, at = body[at : at + 8], at + 8
            case 2:
                size, at = _varint(body, at)
                value, at = body[at : at + size], at + size
            case other:
                raise CelError(f"wire type {other} is not expected")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = body[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _unpack(field: _Field) -> Iterator[int]:
    if isinstance(field, int):
        yield field
        return
    at = 0
    while at < len(field):
        number, at = _varint(field, at)
        yield number


def _to_signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _bytes(field: _Field) -> bytes:
    return field if isinstance(field, bytes) else b""


def _as_number(field: _Field) -> int:
    return field if isinstance(field, int) else 0


def _message(fields: Mapping[int, list[_Field]], number: int) -> bytes:
    return _bytes(fields[number][0]) if number in fields else b""


def _number(fields: Mapping[int, list[_Field]], number: int) -> int:
    return _as_number(fields[number][0]) if number in fields else 0


def _text(fields: Mapping[int, list[_Field]], number: int) -> str:
    return _message(fields, number).decode()
