"""Lists: what is selected, page by page, as it was at one version."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from itertools import islice

import msgspec

from .errors import Refused, bad_request
from .kinds import Kind
from .selection import Selection
from .store import Store
from .tables import Entry


@dataclass(frozen=True, slots=True)
class Page:
    """What a list request asks for."""

    limit: int = 0
    token: str = ""
    #: The version that the list must have, or must not be older than.
    version: str = ""
    match: str = ""


#: Everything at once.
WHOLE = Page()


@dataclass(frozen=True, slots=True)
class Listed:
    """A list, or one page of it."""

    entries: list[Entry]
    version: int
    token: str = ""
    #: How many more there are, where that is known.
    remaining: int | None = None


class _Token(msgspec.Struct, rename={"version": "rv", "after": "start"}):
    version: int
    after: str


def list_entries(store: Store, kind: Kind, selection: Selection, page: Page = WHOLE) -> Listed:
    """The objects that are selected."""
    version, after = _start(store, page)
    table, namespace = store.table(kind.table), selection.namespace
    if selection.namespace_only:
        entries, remaining = table.page(version, namespace, after, page.limit)
        return _listed(entries, version, remaining, known=True)
    candidates, _ = table.page(version, namespace, after)
    matching = (entry for entry in candidates if selection.matches(entry))
    if not page.limit:
        return Listed(list(matching), version)
    entries = list(islice(matching, page.limit))
    return _listed(entries, version, int(next(matching, None) is not None), known=False)


def _listed(entries: list[Entry], version: int, remaining: int, *, known: bool) -> Listed:
    """A page, and where the next one begins if there is one."""
    if not remaining:
        return Listed(entries, version)
    token = msgspec.json.encode(_Token(version, entries[-1].key))
    text = base64.urlsafe_b64encode(token).decode()
    return Listed(entries, version, text, remaining if known else None)


def _start(store: Store, page: Page) -> tuple[int, str]:
    if page.token:
        token = _read_token(page.token)
        if token.version > store.version:
            raise bad_request("continue key is not valid: its version is not known")
        return token.version, token.after
    version = read_version(page.version)
    _not_in_the_future(store, version)
    return version if page.match == "Exact" else store.visible, ""


def read_version(text: str) -> int:
    """A version that a request names; none is 0."""
    if not text:
        return 0
    # More than twenty digits is more than 64 bits.
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise bad_request(f"invalid resource version {text!r}")
    return int(text)


def _not_in_the_future(store: Store, version: int) -> None:
    if version > store.version:
        message = f"Too large resource version: {version}, current: {store.version}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        details = {"causes": [cause], "retryAfterSeconds": 1}
        raise Refused(504, "Timeout", f"Timeout: {message}", details)


def _read_token(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Token)
    except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise bad_request("continue key is not valid") from error
