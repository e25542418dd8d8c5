"""The Status objects with which the API server refuses requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec


class RequestRefused(Exception):
    """A refused request, with the Status that says why."""

    def __init__(
        self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})

    @property
    def status(self) -> dict[str, Any]:
        """The Status object that clients read."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        return {**status, "code": self.code}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one field of an object."""

    field: str
    reason: str
    detail: str

    @property
    def cause(self) -> dict[str, Any]:
        return {"reason": self.reason, "message": self.detail, "field": self.field}


def required(field: str, detail: str = "") -> Fault:
    text = f"Required value: {detail}" if detail else "Required value"
    return Fault(field, "FieldValueRequired", text)


def invalid_value(field: str, value: Any, detail: str) -> Fault:
    return Fault(field, "FieldValueInvalid", f"Invalid value: {_render(value)}: {detail}")


def unsupported(field: str, value: Any, known: Iterable[str]) -> Fault:
    listed = ", ".join(f'"{each}"' for each in known)
    text = f"Unsupported value: {_render(value)}: supported values: {listed}"
    return Fault(field, "FieldValueNotSupported", text)


def forbidden_field(field: str, detail: str) -> Fault:
    return Fault(field, "FieldValueForbidden", f"Forbidden: {detail}")


def duplicate(field: str, value: Any) -> Fault:
    return Fault(field, "FieldValueDuplicate", f"Duplicate value: {_render(value)}")


def too_long(field: str, most: int) -> Fault:
    return Fault(field, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")


def too_many(field: str, count: int, most: int) -> Fault:
    return Fault(field, "FieldValueTooMany", f"Too many: {count}: must have at most {most} items")


def absent(field: str, value: Any) -> Fault:
    """Makes the fault of a value that names something absent."""
    return Fault(field, "FieldValueNotFound", f"Not found: {_render(value)}")


def bad_request(message: str) -> RequestRefused:
    return RequestRefused(400, "BadRequest", message)


def unauthorized() -> RequestRefused:
    return RequestRefused(401, "Unauthorized", "Unauthorized")


def forbidden(
    resource: str, name: str, why: str, causes: list[dict[str, Any]] | None = None
) -> RequestRefused:
    details = _about(resource, name)
    if causes:
        details["causes"] = causes
    return RequestRefused(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', details)


def not_found(resource: str, name: str) -> RequestRefused:
    return RequestRefused(404, "NotFound", f'{resource} "{name}" not found', _about(resource, name))


def no_such_path() -> RequestRefused:
    return RequestRefused(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed(resource: str, method: str) -> RequestRefused:
    message = f'{method.lower()} is not supported on resources of kind "{resource}"'
    return RequestRefused(405, "MethodNotAllowed", message, _about(resource, ""))


def not_acceptable() -> RequestRefused:
    message = "only the following media types are accepted: application/json"
    return RequestRefused(406, "NotAcceptable", message)


def already_exists(resource: str, name: str) -> RequestRefused:
    message = f'{resource} "{name}" already exists'
    return RequestRefused(409, "AlreadyExists", message, _about(resource, name))


def conflict(resource: str, name: str, why: str) -> RequestRefused:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return RequestRefused(409, "Conflict", message, _about(resource, name))


def expired(message: str) -> RequestRefused:
    return RequestRefused(410, "Expired", message)


def too_large(limit: int) -> RequestRefused:
    message = f"limit is {limit} bytes"
    return RequestRefused(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def unsupported_media(accepted: Iterable[str]) -> RequestRefused:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return RequestRefused(415, "UnsupportedMediaType", message)


def invalid(group: str, kind: str, name: str, faults: Iterable[Fault]) -> RequestRefused:
    """Makes the refusal of an object with invalid fields."""
    found = list(faults)
    lines = [f"{each.field}: {each.detail}" for each in found]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    titled = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind, "causes": [each.cause for each in found]}
    known = {key: value for key, value in details.items() if value}
    return RequestRefused(422, "Invalid", f'{titled} "{name}" is invalid: {text}', known)


def too_many_requests(
    message: str, retry_after_seconds: int, cause: Mapping[str, Any]
) -> RequestRefused:
    details = {"causes": [dict(cause)], "retryAfterSeconds": retry_after_seconds}
    return RequestRefused(429, "TooManyRequests", message, details)


def insufficient_storage(message: str) -> RequestRefused:
    return RequestRefused(507, "InsufficientStorage", message)


def _about(resource: str, name: str) -> dict[str, Any]:
    plural, _, group = resource.partition(".")
    details = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in details.items() if value}


def _render(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else msgspec.json.encode(value).decode()
