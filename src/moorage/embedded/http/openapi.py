"""OpenAPI documents, made from the tables of fields.

Those of version 3, one per group and version, say as much as kubectl reads: the fields of each kind
for `explain`, how lists are merged for `apply`, and that the server checks for unknown fields.

The one of version 2 has all kinds. kubectl reads it, in protobuf, to check what no address serves,
such as a List of other objects, and older kubectls read it for everything. It is made from those of
version 3, which say more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from moorage.embedded.api.kind import ServedKind, ServedKinds
from moorage.embedded.api.schema import KUBERNETES_VERSION, SchemaField, SchemaType, struct
from moorage.embedded.store.object_store import Json, encode

from .answers import JSON

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_CUSTOM = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

_INLINE: dict[str, Json] = {
    "any": {},
    "boolean": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "jsonSchema": {"type": "object"},
    "number": {"type": "number", "format": "double"},
    "object": {"type": "object"},
    "string": {"type": "string"},
}
_NAMED: dict[str, tuple[str, Json]] = {
    "intOrString": (
        _INT_OR_STRING,
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    "microTime": (f"{_META}MicroTime", {"type": "string", "format": "date-time"}),
    "quantity": (_QUANTITY, {"oneOf": [{"type": "string"}, {"type": "number"}]}),
    "time": (f"{_META}Time", {"type": "string", "format": "date-time"}),
}
_DESCRIPTIONS = {
    "kind": "The kind of the object.",
    "apiVersion": "The group and version of the kind.",
    "metadata": "Name, labels and the like.",
    "spec": "What is wanted.",
    "status": "What is the case.",
    "coexistPolicy": (
        "Which other pods this pod can share a node with: Any, or DaemonsetAndStaticPods. "
        "A field of Moorage behind the gate CoexistPolicy."
    ),
}
_TYPE_META = {
    name: {"description": _DESCRIPTIONS[name], "type": "string"} for name in ("apiVersion", "kind")
}
_LIST_META: Json = {
    "type": "object",
    "properties": {
        "continue": {"type": "string"},
        "remainingItemCount": {"type": "integer", "format": "int64"},
        "resourceVersion": {"type": "string"},
        "selfLink": {"type": "string"},
    },
}
INFO = {"title": "Moorage embedded cluster", "version": f"v{KUBERNETES_VERSION}"}

_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def documents(kinds: ServedKinds) -> dict[str, bytes]:
    """Makes the document of each group and version, by addresses such as apis/apps/v1.

    The document of the empty address lists the others, with a hash of their content.
    """
    prefixes = sorted({_prefix(each) for each in kinds})
    found = {prefix: _document(kinds, prefix) for prefix in prefixes}
    paths = {
        prefix: {"serverRelativeURL": f"/openapi/v3/{prefix}?hash={_digest(document)}"}
        for prefix, document in found.items()
    }
    return {"": encode({"paths": paths}), **found}


def _digest(document: bytes) -> str:
    return hashlib.sha256(document).hexdigest()[:32].upper()


def _document(kinds: ServedKinds, prefix: str) -> bytes:
    served = [each for each in kinds if _prefix(each) == prefix]
    return encode(
        {
            "openapi": "3.0.0",
            "info": INFO,
            "paths": dict(path for kind in served for path in _paths(prefix, kind)),
            "components": {"schemas": schemas(served)},
        }
    )


def full_name(schema: str) -> str:
    """Returns the name of a type as clients know it."""
    if schema.startswith("meta.v1."):
        return _META + schema.removeprefix("meta.v1.")
    if schema.startswith("apiextensions.v1."):
        return _CUSTOM + schema.removeprefix("apiextensions.v1.")
    return f"io.k8s.api.{schema}"


def _prefix(kind: ServedKind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _paths(prefix: str, kind: ServedKind) -> Iterator[tuple[str, Json]]:
    below = "namespaces/{namespace}/" if kind.namespaced else ""
    whole = f"/{prefix}/{below}{kind.plural}"
    operation: Json = {
        "parameters": _PARAMETERS,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-group-version-kind": _identity(kind, kind.kind),
    }
    reading = {**operation, "parameters": []}
    if "create" in kind.verbs:
        yield whole, {"get": reading, "post": operation}
    if "patch" in kind.verbs:
        yield f"{whole}/{{name}}", {"get": reading, "patch": operation, "put": operation}


def schemas(kinds: Iterable[ServedKind]) -> Json:
    """Returns the types of kinds, of their lists, and of all that they refer to."""
    found: Json = {}
    for kind in kinds:
        name = full_name(kind.schema) if kind.schema else _custom_name(kind)
        if kind.schema:
            _collect(kind.schema, found)
            found[name]["properties"] = {**_TYPE_META, **found[name]["properties"]}
        else:
            _collect("meta.v1.ObjectMeta", found)
            found[name] = _custom(kind.rules.describe())
        found[name]["x-kubernetes-group-version-kind"] = [_identity(kind, kind.kind)]
        if "list" in kind.verbs:
            found[f"{name}List"] = _list_of(kind, name, found)
    return found


def _custom(described: Json) -> Json:
    """Returns the schema of a custom resource with the fields of all objects."""
    common = {**_TYPE_META, "metadata": _reference(f"{_META}ObjectMeta")}
    return {**described, "properties": {**(described.get("properties") or {}), **common}}


def _list_of(kind: ServedKind, name: str, found: Json) -> Json:
    found[f"{_META}ListMeta"] = _LIST_META
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            **_TYPE_META,
            "items": {"type": "array", "items": _reference(name)},
            "metadata": _reference(f"{_META}ListMeta"),
        },
        "x-kubernetes-group-version-kind": [_identity(kind, f"{kind.kind}List")],
    }


def _identity(kind: ServedKind, name: str) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": name}


def _reference(name: str) -> Json:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def _collect(schema: str, found: Json) -> None:
    """Adds a type and all that it refers to."""
    name = full_name(schema)
    if name in found:
        return
    shape = struct(schema)
    found[name] = described = {"type": "object", "properties": {}}
    required = [each.name for each in shape.fields.values() if each.required]
    if required:
        described["required"] = required
    if shape.atomic:
        described["x-kubernetes-map-type"] = "atomic"
    described["properties"] = {
        each.name: _with_description(each.name, _property(each, found))
        for each in shape.fields.values()
    }


def _property(field: SchemaField, found: Json) -> Json:
    schema_of_type = _type_schema(field.type, found)
    strategies = [
        *(["merge"] if field.merges else []),
        *(["retainKeys"] if field.retains_keys else []),
    ]
    extensions = {
        "default": field.default,
        "x-kubernetes-list-map-keys": list(field.keys) or None,
        "x-kubernetes-list-type": _list_type(field),
        "x-kubernetes-map-type": "atomic" if field.atomic and not field.type.is_list else None,
        "x-kubernetes-patch-merge-key": field.merge_key or None,
        "x-kubernetes-patch-strategy": ",".join(strategies) or None,
    }
    return {
        **schema_of_type,
        **{key: value for key, value in extensions.items() if value is not None},
    }


def _list_type(field: SchemaField) -> str | None:
    if not field.type.is_list:
        return None
    if field.keys:
        return "map"
    if field.is_set:
        return "set"
    return "atomic" if field.atomic else None


def _type_schema(kind: SchemaType, found: Json) -> Json:
    if kind.of is not None:
        inner = _type_schema(kind.of, found)
        if kind.is_list:
            return {"type": "array", "items": inner}
        return {"type": "object", "additionalProperties": inner}
    if kind.name in _INLINE:
        return dict(_INLINE[kind.name])
    if kind.name in _NAMED:
        name, shape = _NAMED[kind.name]
        found[name] = shape
    else:
        _collect(kind.name, found)
        name = full_name(kind.name)
    return _reference(name)


def _with_description(name: str, shape: Json) -> Json:
    text = _DESCRIPTIONS.get(name)
    return {"description": text, **shape} if text else shape


def _custom_name(kind: ServedKind) -> str:
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


#: What clients ask for, and what it must be called in an answer, where no @ is allowed.
V2_ACCEPTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_PROTOBUF = V2_ACCEPTED.replace("@", ".")

_NEWER, _OLDER = "#/components/schemas/", "#/definitions/"
_KEPT = ("default", "description", "format", "required")
# What an older document cannot say of a value, so that it says nothing.
_BEYOND = ("nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
_BYTES = 2


def documents_v2(kinds: ServedKinds) -> dict[str, bytes]:
    """Makes the document of all kinds, by media type."""
    definitions = {name: _older(shape) for name, shape in schemas(kinds).items()}
    whole = {"swagger": "2.0", "info": INFO, "paths": {}, "definitions": definitions}
    return {JSON: encode(whole), V2_PROTOBUF: _in_protobuf(whole)}


def _in_protobuf(whole: Json) -> bytes:
    title = _text(1, whole["info"]["title"]) + _text(2, whole["info"]["version"])
    definitions = _named_schemas(whole["definitions"])
    return _text(1, whole["swagger"]) + _message(2, title) + _message(9, definitions)


def _older(shape: Json) -> Json:
    """Converts a schema of OpenAPI v3 to v2."""
    reference = next((each["$ref"] for each in shape.get("allOf") or () if "$ref" in each), "")
    extensions = {key: value for key, value in shape.items() if key.startswith("x-kubernetes-")}
    kept = {key: shape[key] for key in _KEPT if key in shape} | extensions
    if reference:
        return {**kept, "$ref": _OLDER + reference.removeprefix(_NEWER)}
    if any(shape.get(key) for key in _BEYOND):
        return {key: value for key, value in kept.items() if key not in ("format", "required")}
    return {**kept, **_older_type(shape)}


def _older_type(shape: Json) -> Json:
    kind = "string" if shape.get("oneOf") else shape.get("type")
    if kind is None or (kind == "array" and not isinstance(shape.get("items"), dict)):
        return {}
    typed: Json = {"type": kind}
    for part in ("items", "additionalProperties"):
        if isinstance(shape.get(part), dict):
            typed[part] = _older(shape[part])
    if "properties" in shape:
        typed["properties"] = {key: _older(each) for key, each in shape["properties"].items()}
    return typed


def _schema(shape: Json) -> bytes:
    known = (write(shape[key]) for key, write in _WRITERS.items() if key in shape)
    extensions = (
        _message(31, _text(1, key) + _message(2, _any(value)))
        for key, value in shape.items()
        if key.startswith("x-kubernetes-")
    )
    return b"".join((*known, *extensions))


def _named_schemas(shapes: Mapping[str, Json]) -> bytes:
    return b"".join(
        _message(1, _text(1, name) + _message(2, _schema(shape))) for name, shape in shapes.items()
    )


def _any(value: Any) -> bytes:
    """Encodes a value as YAML, by its JSON."""
    return _message(2, encode(value))


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode())


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(number, each) for each in values)


def _message(number: int, body: bytes) -> bytes:
    return bytes([*_varint(number << 3 | _BYTES), *_varint(len(body))]) + body


def _varint(value: int) -> Iterator[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value


# The parts of a schema, with the numbers that they have in protobuf.
_WRITERS: Mapping[str, Callable[[Any], bytes]] = {
    "$ref": lambda value: _text(1, value),
    "format": lambda value: _text(2, value),
    "description": lambda value: _text(4, value),
    "default": lambda value: _message(5, _any(value)),
    "required": lambda value: _texts(19, value),
    "additionalProperties": lambda value: _message(21, _message(1, _schema(value))),
    "type": lambda value: _message(22, _text(1, value)),
    "items": lambda value: _message(23, _message(1, _schema(value))),
    "properties": lambda value: _message(25, _named_schemas(value)),
}
