"""What is sent and what is wanted: content types, and the forms an answer can take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import yaml

from mooring.embedded.errors import bad_request, not_acceptable, unsupported_media
from mooring.embedded.protobuf import read_protobuf
from mooring.embedded.tables import decode
from mooring.embedded.wire import expect_shallow

Form = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

_JSON, _YAML = "application/json", "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The form that a client asks for."""

    form: Form = ""
    version: str = "v1"


def wanted(accept: str) -> Wanted:
    """The first form of the Accept header that can be served."""
    if not accept:
        return Wanted()
    for each in accept.split(","):
        media, *rest = (part.strip() for part in each.split(";"))
        options = dict(part.split("=", 1) for part in rest if "=" in part)
        if media not in (_JSON, "*/*", "application/*"):
            continue
        match options.get("as"):
            case None:
                return Wanted()
            case "Table" | "PartialObjectMetadata" | "PartialObjectMetadataList" as form:
                if options.get("g") == "meta.k8s.io" and options.get("v") in ("v1", "v1beta1"):
                    return Wanted(form, options["v"])
            case _:
                continue
    raise not_acceptable()


def media_of(content_type: str) -> str:
    """The media type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def read_object(content_type: str, body: bytes, schema: str = "") -> dict[str, Any]:
    """The object in a body; in protobuf it can be read if its type is known."""
    if schema and media_of(content_type) == _PROTOBUF:
        return read_protobuf(schema, body)
    raw = read_any(content_type, body)
    if not isinstance(raw, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    return raw


def read_any(content_type: str, body: bytes) -> Any:
    media = media_of(content_type)
    if media in (_JSON, "") or media.endswith("+json"):
        raw = _json(body)
    elif media in (_YAML, "text/yaml") or media.endswith("+yaml"):
        raw = _yaml(body)
    else:
        raise unsupported_media((_JSON, _YAML))
    expect_shallow(raw)
    return raw


def _json(body: bytes) -> Any:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the body is not JSON: {error}") from error


def _yaml(body: bytes) -> Any:
    try:
        # Most of what comes as YAML is JSON, which reads a hundred times as fast.
        return decode(body)
    except RecursionError as error:
        raise bad_request(f"the body is not YAML: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        raw = yaml.load(body, Loader=_Loader)
        # What JSON cannot say, such as dates and keys that are numbers, is refused or made text.
        return decode(msgspec.json.encode(raw))
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, ValueError, RecursionError) as error:
        raise bad_request(f"the body is not YAML: {error}") from error


class _Loader(yaml.SafeLoader):
    """YAML in which a date is a text, as in JSON, and nothing stands for something else.

    A few aliases of aliases would fill the memory.
    """

    def compose_node(self, parent: Any, index: int) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, shape) for tag, shape in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
