"""Reviews: who is asking, and whether they may. Whoever has the token may do everything."""

from __future__ import annotations

from aiohttp import web

from mooring.embedded.errors import method_not_allowed
from mooring.embedded.wire import Json

from .answers import json_answer
from .checking import check_type
from .media import read_object
from .paths import Address

_USER = {
    "username": "mooring-admin",
    "groups": ["system:masters", "system:authenticated"],
}
_ALLOWED = {"allowed": True, "reason": "whoever has the token may do everything"}
_EVERYTHING: Json = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_STATUSES: dict[str, Json] = {
    # Another token than the server's own is nobody's.
    "TokenReview": {"authenticated": False},
    "SelfSubjectReview": {"userInfo": _USER},
    "SubjectAccessReview": _ALLOWED,
    "SelfSubjectAccessReview": _ALLOWED,
    "LocalSubjectAccessReview": _ALLOWED,
    "SelfSubjectRulesReview": _EVERYTHING,
}


async def review(request: web.BaseRequest, at: Address) -> web.StreamResponse:
    """Answers a review; none is stored."""
    if request.method != "POST" or at.name:
        raise method_not_allowed(at.kind.resource, request.method)
    content_type, body = request.headers.get("Content-Type", ""), await request.read()
    raw = read_object(content_type, body, at.kind.schema)
    check_type(at.kind, raw)
    item = {"metadata": {}, "spec": {}, **at.kind.read(raw)}
    return json_answer({**item, "status": _STATUSES[at.kind.kind]}, 201)
