"""Whether a body is what its address is for, and how unknown fields are told."""

from __future__ import annotations

from mooring.embedded.errors import bad_request
from mooring.embedded.kinds import Kind
from mooring.embedded.wire import Json, unknown_fields

from .asking import Query

# More warnings than these nobody reads.
_MOST_WARNINGS = 20


def check_type(kind: Kind, raw: Json) -> None:
    """A body may leave out its kind and version, but not name others."""
    version, named = raw.get("apiVersion"), raw.get("kind")
    if version not in (None, "", kind.api_version):
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({kind.api_version})"
        )
    if named not in (None, "", kind.kind):
        raise bad_request(
            f"the object provided is unrecognized: kind {named!r} does not match {kind.kind!r}"
        )


def check_fields(query: Query, kind: Kind, raw: Json) -> list[str]:
    """The warnings about fields that nobody knows; an error if the client is strict."""
    how = query.get("fieldValidation", "")
    if how == "Ignore":
        return []
    unknown = [f'unknown field "{path}"' for path in unknown_fields(raw, kind.known(raw))]
    if unknown and how == "Strict":
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(unknown)}"
        )
    return unknown[:_MOST_WARNINGS]
