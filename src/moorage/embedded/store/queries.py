"""Selectors as requests write them, and lists and watches of a table."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import msgspec

from moorage.embedded.request_refusals import RequestRefused, bad_request, expired
from moorage.objects.selector import EVERYTHING, Requirement, Selector

from .object_store import ObjectStore, StoredObject, TableChange

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*", re.ASCII)
_EQUAL = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*([-A-Za-z0-9_.]*)\s*", re.ASCII)
_PRESENT = re.compile(rf"\s*(!?)\s*({_KEY})\s*", re.ASCII)
_ORDERED = re.compile(rf"\s*({_KEY})\s*([<>])\s*(-?\d+)\s*", re.ASCII)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)
_FIELD = re.compile(r"\s*([A-Za-z0-9.\[\]]+)\s*(==|=|!=)(.*)", re.ASCII | re.DOTALL)

# A key has at most a prefix of 253 characters, a slash and a name of 63.
_LONGEST_KEY = 317
_LONGEST_VALUE = 63

#: Whether a field must have a value, or must not.
FieldTerm = tuple[int, str, bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a table a request selects."""

    namespace: str = ""
    labels: Selector = EVERYTHING
    #: What numbers of labels must be more or less than: key, sign, number.
    orders: tuple[tuple[str, str, int], ...] = ()
    #: Terms over the selectable fields of the kind, by position.
    fields: tuple[FieldTerm, ...] = ()

    def matches(self, entry: StoredObject | None) -> bool:
        """Whether an object is selected."""
        if entry is None:
            return False
        if self.namespace and not entry.key.startswith(f"{self.namespace}/"):
            return False
        for position, value, wanted in self.fields:
            if (entry.fields[position] == value) is not wanted:
                return False
        return self.labels.matches(entry.labels) and self._matches_orders(entry)

    @property
    def namespace_only(self) -> bool:
        """Whether nothing but the namespace matters."""
        return not (self.labels or self.fields or self.orders)

    @property
    def everything(self) -> bool:
        return not self.namespace and self.namespace_only

    def _matches_orders(self, entry: StoredObject) -> bool:
        return all(_compares(entry.labels.get(key), sign, at) for key, sign, at in self.orders)


def read_labels(text: str) -> tuple[Selector, tuple[tuple[str, str, int], ...]]:
    """Reads a label selector such as "app in (a, b), !canary"."""
    requirements = set()
    orders = []
    for term in _terms(text):
        ordered = _ORDERED.fullmatch(term)
        if ordered:
            orders.append((ordered[1], ordered[2], int(ordered[3])))
        else:
            requirements.add(_requirement(term, text))
    in_order = sorted(requirements, key=lambda each: (each.key, each.operator, each.values))
    return Selector(tuple(in_order)), tuple(orders)


def read_fields(text: str, position_of: Callable[[str], int | None]) -> tuple[FieldTerm, ...]:
    """Reads a field selector such as "spec.nodeName=a,status.phase!=Failed"."""
    terms = []
    for part in _split_fields(text):
        match = _FIELD.fullmatch(part)
        if match is None:
            raise bad_request(f"invalid field selector: {part!r}")
        field, operator, value = match.groups()
        position = position_of(field)
        if position is None:
            raise bad_request(f"field label not supported: {field}")
        terms.append((position, re.sub(r"\\(.)", r"\1", value), operator != "!="))
    return tuple(terms)


def _split_fields(text: str) -> Iterator[str]:
    # A backslash keeps the comma after it in the value.
    for part in re.findall(r"(?:\\.|[^,\\])+", text, re.DOTALL):
        if part.strip():
            yield part


def _terms(text: str) -> Iterator[str]:
    """Yields the terms of a label selector; commas within parentheses do not separate them."""
    if not text.strip():
        return
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _requirement(term: str, whole: str) -> Requirement:
    equal = _EQUAL.fullmatch(term)
    if equal:
        operator = "NotIn" if equal[2] == "!=" else "In"
        return _make_requirement(equal[1], operator, (equal[3],), whole)
    in_set = _SET.fullmatch(term)
    if in_set:
        values = tuple(sorted({each.strip() for each in in_set[3].split(",")}))
        return _make_requirement(in_set[1], "In" if in_set[2] == "in" else "NotIn", values, whole)
    present = _PRESENT.fullmatch(term)
    if present is None:
        raise bad_request(f"unable to parse requirement: {whole!r}")
    return _make_requirement(present[2], "DoesNotExist" if present[1] else "Exists", (), whole)


def _make_requirement(key: str, operator: str, values: tuple[str, ...], whole: str) -> Requirement:
    if len(key) > _LONGEST_KEY or key.count("/") > 1:
        raise bad_request(f"unable to parse requirement: invalid label key {key!r} in {whole!r}")
    for value in values:
        if len(value) > _LONGEST_VALUE or not _VALUE.fullmatch(value):
            raise bad_request(f"unable to parse requirement: invalid label value {value!r}")
    match operator:
        case "In" | "NotIn" | "Exists" | "DoesNotExist":
            return Requirement(key, operator, values)
        case _:
            raise AssertionError(operator)


def _compares(value: str | None, sign: str, bound: int) -> bool:
    if value is None or not re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
        return False
    return int(value) > bound if sign == ">" else int(value) < bound


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What a list request asks for."""

    limit: int = 0
    token: str = ""
    #: The version that the list must have, or must not be older than.
    version: str = ""
    match: str = ""


#: Everything at once.
WHOLE = ListRequest()


@dataclass(frozen=True, slots=True)
class ListResult:
    """A list, or one page of it."""

    entries: list[StoredObject]
    version: int
    token: str = ""
    #: How many more there are, where that is known.
    remaining: int | None = None


class _Token(msgspec.Struct, rename={"version": "rv", "after": "start"}):
    version: int
    after: str


def list_entries(
    store: ObjectStore, name: str, selection: Selection, page: ListRequest = WHOLE
) -> ListResult:
    """Lists the selected objects, one page at a time."""
    version, after = _start(store, page)
    table, namespace = store.table(name), selection.namespace
    if selection.namespace_only:
        entries, remaining = table.page(version, namespace, after, page.limit)
        return _page_result(entries, version, remaining, known=True)
    candidates, _ = table.page(version, namespace, after)
    matching = (entry for entry in candidates if selection.matches(entry))
    if not page.limit:
        return ListResult(list(matching), version)
    entries = list(islice(matching, page.limit))
    return _page_result(entries, version, int(next(matching, None) is not None), known=False)


def _page_result(
    entries: list[StoredObject], version: int, remaining: int, *, known: bool
) -> ListResult:
    """Makes a page, with a token if another one follows."""
    if not remaining:
        return ListResult(entries, version)
    token = msgspec.json.encode(_Token(version, entries[-1].key))
    text = base64.urlsafe_b64encode(token).decode()
    return ListResult(entries, version, text, remaining if known else None)


def _start(store: ObjectStore, page: ListRequest) -> tuple[int, str]:
    if page.token:
        token = _read_token(page.token)
        if token.version > store.version:
            raise bad_request("continue key is not valid: its version is not known")
        return token.version, token.after
    version = read_version(page.version)
    _not_in_the_future(store, version)
    return version if page.match == "Exact" else store.visible, ""


def read_version(text: str) -> int:
    """Reads the version that a request names; 0 for none."""
    if not text:
        return 0
    # More than twenty digits is more than 64 bits.
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise bad_request(f"invalid resource version {text!r}")
    return int(text)


def _not_in_the_future(store: ObjectStore, version: int) -> None:
    if version > store.version:
        message = f"Too large resource version: {version}, current: {store.version}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        details = {"causes": [cause], "retryAfterSeconds": 1}
        raise RequestRefused(504, "Timeout", f"Timeout: {message}", details)


def _read_token(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Token)
    except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise bad_request("continue key is not valid") from error


EventType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch. A deleted object has its last state."""

    type: EventType
    entry: StoredObject
    version: int


class TableWatch:
    """A place in the history of a table, which moves on as it is read."""

    def __init__(self, store: ObjectStore, name: str, selection: Selection, version: int) -> None:
        if version > store.version:
            raise expired(f"too large resource version: {version}")
        self.version = version
        self._store = store
        self._name = name
        self._selection = selection
        # A version that is forgotten already is refused now rather than in the stream.
        store.table(name).changes(version, version)

    def ready(self) -> list[WatchEvent]:
        """Returns the events since the last call."""
        store = self._store
        changes = store.table(self._name).changes(self.version, store.safe_version)
        # Nothing of this kind happened up to here, so resuming from here is as good and is
        # remembered for longer.
        self.version = max(self.version, store.safe_version)
        return list(self._events_of(changes))

    async def events(self) -> AsyncIterator[list[WatchEvent]]:
        """Yields events as they happen, several at a time if there are many."""
        while True:
            found = self.ready()
            if found:
                yield found
            await self._store.until_changed(self._name, self.version)

    async def wait(self) -> None:
        """Waits until any object of the table changes."""
        await self._store.until_changed(self._name, self.version)

    def _events_of(self, changes: list[TableChange]) -> Iterator[WatchEvent]:
        if self._selection.everything:
            for change in changes:
                yield WatchEvent(_type(change), change.after, change.version)
            return
        for change in changes:
            event = self._event_of(change)
            if event is not None:
                yield event

    def _event_of(self, change: TableChange) -> WatchEvent | None:
        before = self._selection.matches(change.before)
        after = not change.gone and self._selection.matches(change.after)
        if after:
            return WatchEvent("MODIFIED" if before else "ADDED", change.after, change.version)
        if not before or change.before is None:
            return None
        # To this watch an object that is not selected any more is gone.
        last = change.after if change.gone else _as_of(change.before, change.version)
        return WatchEvent("DELETED", last, change.version)


def _type(change: TableChange) -> EventType:
    if change.gone:
        return "DELETED"
    return "ADDED" if change.before is None else "MODIFIED"


def _as_of(entry: StoredObject, version: int) -> StoredObject:
    item = entry.object
    item["metadata"]["resourceVersion"] = str(version)
    return entry.rewrite(version, item)
