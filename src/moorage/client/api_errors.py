"""Errors of requests to an API server; `documents.errors` draws the tree."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from moorage.documents.errors import MoorageError

# Bodies that no API server wrote, such as a proxy's error page, are shown in part.
_MOST_SHOWN = 300


class ClientError(MoorageError):
    """A request that did not succeed."""


class Unreachable(ClientError):
    """Nothing was sent, so it is safe to try again."""

    def __init__(self, message: str, *, is_repeated: bool = False) -> None:
        super().__init__(message)
        #: Whether another request of the same client failed like this a moment ago.
        self.is_repeated = is_repeated


class TooLarge(ClientError):
    """The answer was not read to its end. A smaller request may succeed."""


class Withheld(Unreachable):
    """A write that was not sent, because this client may not write any more."""


class OutcomeUnknown(ClientError):
    """The request was sent, but no answer came. A write may or may not have happened."""


class ApiError(ClientError):
    """The server refused: HTTP status, Kubernetes' reason and the message for people."""

    def __init__(
        self, status: int, reason: str, message: str, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{message} ({status} {reason})")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def is_bad_request(self) -> bool:
        return self.status == HTTPStatus.BAD_REQUEST

    @property
    def is_unauthorized(self) -> bool:
        return self.status == HTTPStatus.UNAUTHORIZED

    @property
    def is_forbidden(self) -> bool:
        return self.status == HTTPStatus.FORBIDDEN

    @property
    def is_not_found(self) -> bool:
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_already_exists(self) -> bool:
        return self.status == HTTPStatus.CONFLICT and self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """Whether another client changed the object in between."""
        return self.status == HTTPStatus.CONFLICT and self.reason != "AlreadyExists"

    @property
    def is_gone(self) -> bool:
        """Whether the resource version or continue token is too old."""
        return self.status == HTTPStatus.GONE

    @property
    def is_invalid(self) -> bool:
        return self.status == HTTPStatus.UNPROCESSABLE_ENTITY

    @property
    def is_too_many_requests(self) -> bool:
        return self.status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def is_server_error(self) -> bool:
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    code: int = 0


_STATUS = msgspec.json.Decoder(_Status)


def read_refusal(
    status: int, body: bytes | msgspec.Raw, retry_after: float | None = None
) -> ApiError:
    """Returns the error of an answer; a `status` of 0 takes the code from the body."""
    try:
        answer = _STATUS.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        answer = _Status(message=bytes(body)[:_MOST_SHOWN].decode(errors="replace").strip())
    status = status or answer.code
    return ApiError(
        status, answer.reason or _phrase(status), answer.message or "no message", retry_after
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.replace(" ", "")
    except ValueError:
        return "Unknown"
