"""What keys and values of labels may look like, and what the API says of those that do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LONGEST_LABEL = 63
_LONGEST_PREFIX = 253

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_NAME})?"
_PREFIX_SHAPE, _NAME_SHAPE, _VALUE_SHAPE = (
    re.compile(each, re.ASCII) for each in (_PREFIX, _NAME, _VALUE)
)

_EDGES = "and must start and end with an alphanumeric character"
_PREFIX_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', {_EDGES} (e.g. 'example.com', regex used for validation is '{_PREFIX}')"
)
_NAME_TEXT = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_EDGES} (e.g. 'MyName',  or "
    f"'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', {_EDGES} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)


def find_key_faults(key: str) -> Iterator[str]:
    """Yields what is wrong with the key of a label."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        with_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a valid label key {_NAME_TEXT} {with_prefix}"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        yield from (f"prefix part {fault}" for fault in find_prefix_faults(prefix))
    if not name:
        yield "name part must be non-empty"
    elif _is_longer(name, _LONGEST_LABEL):
        yield f"name part must be no more than {_LONGEST_LABEL} bytes"
    if not _NAME_SHAPE.fullmatch(name):
        yield f"name part {_NAME_TEXT}"


def find_prefix_faults(name: str) -> Iterator[str]:
    """Yields what is wrong with a DNS name, such as the prefix of a key."""
    if _is_longer(name, _LONGEST_PREFIX):
        yield f"must be no more than {_LONGEST_PREFIX} bytes"
    if not _PREFIX_SHAPE.fullmatch(name):
        yield _PREFIX_TEXT


def find_value_faults(value: str) -> Iterator[str]:
    """Yields what is wrong with the value of a label."""
    if _is_longer(value, _LONGEST_LABEL):
        yield f"must be no more than {_LONGEST_LABEL} bytes"
    if not _VALUE_SHAPE.fullmatch(value):
        yield _VALUE_TEXT


def _is_longer(text: str, most: int) -> bool:
    return len(text.encode("utf-8", "replace")) > most
