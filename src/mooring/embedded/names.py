"""What names, labels and annotations may look like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import Fault, invalid_value, required

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL, re.ASCII)
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

_LONGEST_LABEL = 63
_LONGEST_NAME = 253
_MOST_ANNOTATIONS_BYTES = 256 * 1024


def subdomain_faults(field: str, name: str) -> Iterator[Fault]:
    yield from _shaped(field, name, _SUBDOMAIN, _LONGEST_NAME, _SUBDOMAIN_TEXT)


def label_name_faults(field: str, name: str) -> Iterator[Fault]:
    yield from _shaped(field, name, _DNS_LABEL, _LONGEST_LABEL, _LABEL_TEXT)


def dns_1035_faults(field: str, name: str) -> Iterator[Fault]:
    yield from _shaped(field, name, _DNS_1035, _LONGEST_LABEL, _1035_TEXT)


def label_faults(field: str, labels: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with labels, or with the labels that a selector asks for."""
    for key, value in labels.items():
        yield from label_key_faults(field, key)
        yield from label_value_faults(field, value)


def label_key_faults(field: str, key: str) -> Iterator[Fault]:
    prefix, slash, name = key.rpartition("/")
    if not name:
        yield invalid_value(field, key, "name part must be non-empty")
    elif len(name) > _LONGEST_LABEL:
        yield invalid_value(field, key, "name part must be no more than 63 bytes")
    elif not _QUALIFIED.fullmatch(name):
        yield invalid_value(field, key, _QUALIFIED_TEXT)
    if slash and not prefix:
        yield invalid_value(field, key, "prefix part must be non-empty")
    elif slash and (len(prefix) > _LONGEST_NAME or not _SUBDOMAIN.fullmatch(prefix)):
        yield invalid_value(field, key, f"prefix part {_SUBDOMAIN_TEXT}")


def label_value_faults(field: str, value: str) -> Iterator[Fault]:
    if len(value) > _LONGEST_LABEL:
        yield invalid_value(field, value, "must be no more than 63 bytes")
    elif not _VALUE.fullmatch(value):
        yield invalid_value(field, value, _VALUE_TEXT)


def annotation_faults(field: str, annotations: Mapping[str, str]) -> Iterator[Fault]:
    size = 0
    for key, value in annotations.items():
        yield from label_key_faults(field, key.lower())
        size += len(key.encode("utf-8", "replace")) + len(value.encode("utf-8", "replace"))
    if size > _MOST_ANNOTATIONS_BYTES:
        yield Fault(field, "FieldValueTooLong", "Too long: may not be more than 262144 bytes")


def _shaped(
    field: str, name: str, shape: re.Pattern[str], longest: int, text: str
) -> Iterator[Fault]:
    if not name:
        yield required(field)
    elif len(name) > longest:
        yield invalid_value(field, name, f"must be no more than {longest} bytes")
    elif not shape.fullmatch(name):
        yield invalid_value(field, name, text)
