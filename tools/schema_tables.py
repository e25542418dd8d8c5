"""Writes the tables of fields in `moorage/embedded/api/schemas` for a version of Kubernetes.

    python tools/schema_tables.py /path/to/kubernetes v1.36.4
    python tools/schema_tables.py /path/to/kubernetes v1.36.4 --check

The first argument is a clone of https://github.com/kubernetes/kubernetes, bare or not. The types,
defaults and merge keys come from its OpenAPI documents (api/openapi-spec/v3), the field numbers of
protobuf from its generated.proto files, and which fields keep a zero from its types.go. The tables
have every type that a served kind refers to. With `--check` nothing is written; the exit code says
whether the tables are up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parents[1] / "src" / "moorage" / "embedded" / "api" / "schemas"
VERSION_FILE = "VERSION"

#: The OpenAPI document of each package.
_DOCUMENTS = {
    "admissionregistration.v1": "apis__admissionregistration.k8s.io__v1",
    "apiextensions.v1": "apis__apiextensions.k8s.io__v1",
    "apps.v1": "apis__apps__v1",
    "authentication.v1": "apis__authentication.k8s.io__v1",
    "authorization.v1": "apis__authorization.k8s.io__v1",
    "autoscaling.v1": "apis__autoscaling__v1",
    "batch.v1": "apis__batch__v1",
    "coordination.v1": "apis__coordination.k8s.io__v1",
    "core.v1": "api__v1",
    "discovery.v1": "apis__discovery.k8s.io__v1",
    "events.v1": "apis__events.k8s.io__v1",
    "networking.v1": "apis__networking.k8s.io__v1",
    "node.v1": "apis__node.k8s.io__v1",
    "policy.v1": "apis__policy__v1",
    "rbac.v1": "apis__rbac.authorization.k8s.io__v1",
    "resource.v1": "apis__resource.k8s.io__v1",
    "scheduling.v1": "apis__scheduling.k8s.io__v1",
    "scheduling.v1alpha2": "apis__scheduling.k8s.io__v1alpha2",
    "storage.v1": "apis__storage.k8s.io__v1",
}

# The packages whose fields have numbers in protobuf.
_READ = {*_DOCUMENTS, "meta.v1"}

# Types that are sent or answered without being kinds of their own address.
_EXTRA_ROOTS = (
    "apiextensions.v1.JSONSchemaProps",
    "autoscaling.v1.Scale",
    "core.v1.Binding",
    "meta.v1.DeleteOptions",
    "policy.v1.Eviction",
)

_PREFIXES = {
    "io.k8s.api.": "",
    "io.k8s.apimachinery.pkg.apis.meta.v1.": "meta.v1.",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.": "apiextensions.v1.",
}
_FOLDERS = {
    "apiextensions.v1": "staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
    "meta.v1": "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1",
}
_GO_FILES = {"apiextensions.v1": ("types.go", "types_jsonschema.go")}

_SCHEMAS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
#: Types that are read as scalars.
_SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "object",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "object",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
    # A schema refers to itself; custom resources read it as it is.
    f"{_SCHEMAS}.JSONSchemaProps": "jsonSchema",
    f"{_SCHEMAS}.JSONSchemaPropsOrArray": "jsonSchemaOrArray",
    f"{_SCHEMAS}.JSONSchemaPropsOrBool": "jsonSchemaOrBool",
    f"{_SCHEMAS}.JSONSchemaPropsOrStringArray": "jsonSchemaOrStrings",
    f"{_SCHEMAS}.JSON": "any",
}

#: Fields that no document of that version has: Moorage's own, and those of jobs in 1.37.
_ADDED = {
    "batch.v1.JobSpec": ("scheduling: JobSchedulingConfiguration = 17",),
    "core.v1.PodSpec": ("coexistPolicy: string",),
}

_GROUPS = "scheduling.v1alpha2"

#: The types of these fields.
_ADDED_TYPES = {
    "batch.v1.JobDisruptionMode": (
        f"all: {_GROUPS}.BasicSchedulingPolicy = 2",
        f"single: {_GROUPS}.BasicSchedulingPolicy = 1",
    ),
    "batch.v1.JobGangPolicy": ("minCount: int32 = 1",),
    "batch.v1.JobSchedulingConfiguration": (
        "disruptionMode: JobDisruptionMode = 3",
        f"resourceClaims: []{_GROUPS}.PodGroupResourceClaim = 4 | merge=name keys=name",
        f"schedulingConstraints: {_GROUPS}.PodGroupSchedulingConstraints = 2",
        "schedulingPolicy: JobSchedulingPolicy = 1",
    ),
    "batch.v1.JobSchedulingPolicy": (
        f"basic: {_GROUPS}.BasicSchedulingPolicy = 1",
        "gang: JobGangPolicy = 2",
    ),
    # Kubernetes 1.37 has these in v1.
    "resource.v1.DeviceTaintRule": (
        "metadata: meta.v1.ObjectMeta = 1",
        "spec: DeviceTaintRuleSpec = 2 | required",
        "status: DeviceTaintRuleStatus = 3",
    ),
    "resource.v1.DeviceTaintRuleSpec": (
        "deviceSelector: DeviceTaintSelector = 1",
        "taint: DeviceTaint = 2 | required",
    ),
    "resource.v1.DeviceTaintRuleStatus": (
        "conditions: []meta.v1.Condition = 1 | merge=type keys=type",
    ),
    "resource.v1.DeviceTaintSelector": (
        "device: string = 4 | zero",
        "driver: string = 2 | zero",
        "pool: string = 3 | zero",
    ),
    # Kubernetes 1.37 has these; without numbers, they are not read from protobuf.
    "scheduling.v1beta1.DisruptionMode": (
        f"all: {_GROUPS}.BasicSchedulingPolicy",
        f"single: {_GROUPS}.BasicSchedulingPolicy",
    ),
    "scheduling.v1beta1.PodGroup": (
        "metadata: meta.v1.ObjectMeta",
        "spec: PodGroupSpec | required",
        "status: PodGroupStatus",
    ),
    "scheduling.v1beta1.PodGroupSpec": (
        "disruptionMode: DisruptionMode",
        "priority: int32 | zero",
        "priorityClassName: string",
        f"resourceClaims: []{_GROUPS}.PodGroupResourceClaim | merge=name retainKeys keys=name",
        f"schedulingConstraints: {_GROUPS}.PodGroupSchedulingConstraints",
        f"schedulingPolicy: {_GROUPS}.PodGroupSchedulingPolicy | required",
        "workloadRef: WorkloadReference",
    ),
    "scheduling.v1beta1.PodGroupStatus": (
        "conditions: []meta.v1.Condition | merge=type keys=type",
        f"resourceClaimStatuses: []{_GROUPS}.PodGroupResourceClaimStatus"
        " | merge=name retainKeys keys=name",
    ),
    "scheduling.v1beta1.PodGroupTemplate": (
        "disruptionMode: DisruptionMode",
        "name: string | required zero",
        "priority: int32 | zero",
        "priorityClassName: string",
        f"resourceClaims: []{_GROUPS}.PodGroupResourceClaim | merge=name retainKeys keys=name",
        f"schedulingConstraints: {_GROUPS}.PodGroupSchedulingConstraints",
        f"schedulingPolicy: {_GROUPS}.PodGroupSchedulingPolicy | required",
    ),
    "scheduling.v1beta1.Workload": (
        "metadata: meta.v1.ObjectMeta",
        "spec: WorkloadSpec | required",
    ),
    "scheduling.v1beta1.WorkloadReference": (
        "templateName: string | required zero",
        "workloadName: string | required zero",
    ),
    "scheduling.v1beta1.WorkloadSpec": (
        f"controllerRef: {_GROUPS}.TypedLocalObjectReference",
        "podGroupTemplates: []PodGroupTemplate | keys=name required zero",
    ),
}

#: Scalars that Go leaves out of JSON if they are zero.
_CAN_BE_ZERO = ("boolean", "bytes", "int32", "int64", "string")

# All objects have these, and the decoder adds them.
_LEFT_OUT = ("kind", "apiVersion")

Json = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A clone of Kubernetes at one version."""

    folder: Path
    ref: str

    def read(self, path: str) -> str:
        command = ["git", "-C", str(self.folder), "show", f"{self.ref}:{path}"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass
class Schemas:
    """All types of a version, by the names that the tables have."""

    source: Source
    types: dict[str, Json] = field(default_factory=dict)

    def load(self) -> None:
        for document in _DOCUMENTS.values():
            text = self.source.read(f"api/openapi-spec/v3/{document}_openapi.json")
            for name, shape in json.loads(text)["components"]["schemas"].items():
                known = table_name(name)
                if known is not None:
                    self.types[known] = shape

    def reachable(self, roots: Iterable[str]) -> set[str]:
        """The types that others refer to, directly or not."""
        found: set[str] = set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [] if name in _ADDED_TYPES else references(self.types[name])
        return found

    def table(self, package: str, names: Iterable[str]) -> str:
        messages = read_messages(self.source, package) if package in _READ else {}
        own = {name for name in _ADDED_TYPES if name.rpartition(".")[0] == package}
        paragraphs = [self._paragraph(name, messages) for name in sorted({*names, *own})]
        return "\n\n".join(paragraphs) + "\n"

    def _paragraph(self, name: str, messages: Messages) -> str:
        package, _, short = name.rpartition(".")
        if name in _ADDED_TYPES:
            return "\n".join([short, *(f"  {line}" for line in _ADDED_TYPES[name])])
        shape = self.types[name]
        title = f"{short} | atomic" if shape.get("x-kubernetes-map-type") == "atomic" else short
        required, properties = set(shape.get("required") or ()), shape.get("properties") or {}
        numbers = numbers_of(messages, short, properties)
        zeros = zeros_of(read_go_structs(self.source, package), short)
        lines = []
        for each, property_ in sorted(properties.items()):
            if each in _LEFT_OUT and is_object(shape):
                continue
            number = numbers.get(each, "")
            written = f"{each}: {type_text(property_, package)}"
            written += f" = {number}" if number else ""
            found = " ".join(flags(property_, each in required))
            if zeros.get(each, True) and not is_struct(property_):
                found = f"{found} zero".lstrip()
            lines.append(f"{written} | {found}" if found else written)
        lines += _ADDED.get(name, ())
        return "\n".join([title, *(f"  {line}" for line in sorted(lines))])


def table_name(name: str) -> str | None:
    """The name of a type in the tables, such as core.v1.Pod; None for one that they do not have."""
    for prefix, short in _PREFIXES.items():
        if name.startswith(prefix):
            known = short + name.removeprefix(prefix)
            return known if known.count(".") == 2 else None
    return None


def is_object(shape: Json) -> bool:
    """Whether a type is a kind, whose kind and apiVersion are not fields like others."""
    return "x-kubernetes-group-version-kind" in shape


def reference_of(shape: Json) -> str:
    for each in (shape, *(shape.get("allOf") or ())):
        if "$ref" in each:
            return str(each["$ref"]).rpartition("/")[2]
    return ""


def references(shape: Json) -> Iterator[str]:
    """The types that a type refers to."""
    for each in (shape.get("properties") or {}).values():
        for part in (each, each.get("items") or {}, each.get("additionalProperties") or {}):
            inner = part.get("items") or part.get("additionalProperties") or {}
            for candidate in (part, inner):
                name = reference_of(candidate)
                if name and name not in _SCALARS:
                    known = table_name(name)
                    assert known is not None, name
                    yield known


def type_text(shape: Json, package: str) -> str:
    """A type as the tables write it; one of the same package without the package."""
    name = reference_of(shape)
    if name in _SCALARS:
        return _SCALARS[name]
    if name:
        known = table_name(name)
        assert known is not None, name
        return known.removeprefix(f"{package}.")
    match shape.get("type"):
        case "array":
            return "[]" + type_text(shape["items"], package)
        case "object" if "additionalProperties" in shape:
            return "map " + type_text(shape["additionalProperties"], package)
        case "integer":
            return str(shape.get("format", "int64"))
        case "string" if shape.get("format") == "byte":
            return "bytes"
        case None:
            return "any"
        case other:
            return str(other)


def flags(shape: Json, required: bool) -> Iterator[str]:
    """How a field is merged, owned and required."""
    strategy = str(shape.get("x-kubernetes-patch-strategy", "")).split(",")
    key = shape.get("x-kubernetes-patch-merge-key", "")
    if "merge" in strategy:
        yield f"merge={key}" if key else "merge"
    if "retainKeys" in strategy:
        yield "retainKeys"
    kind = shape.get("x-kubernetes-list-type") or shape.get("x-kubernetes-map-type")
    if kind == "map":
        yield "keys=" + ",".join(shape["x-kubernetes-list-map-keys"])
    elif kind:
        yield kind
    if required:
        yield "required"
    # An empty default says no more than the type does.
    if shape.get("default") not in (None, "", 0, False, {}):
        yield "default=" + json.dumps(shape["default"])


#: The fields of each message of a package: type, name and number.
Messages = dict[str, list[tuple[str, str, str]]]

_MESSAGE = re.compile(r"message (\w+) \{")
_FIELD = re.compile(r"\s+(?:(?:optional|repeated) ([.\w]+)|map<[^>]+>) (\w+) = (\d+);")


@cache
def read_messages(source: Source, package: str) -> Messages:
    """The messages of a package in protobuf."""
    messages: Messages = {}
    current: list[tuple[str, str, str]] = []
    for line in source.read(f"{folder_of(package)}/generated.proto").splitlines():
        opened, found = _MESSAGE.match(line), _FIELD.match(line)
        if opened:
            current = messages.setdefault(opened[1], [])
        elif found:
            current.append((found[1] or "", found[2], found[3]))
    return messages


def folder_of(package: str) -> str:
    """The folder of a package's types."""
    name, _, version = package.partition(".")
    return _FOLDERS.get(package, f"staging/src/k8s.io/api/{name}/{version}")


#: The fields of each Go struct of a package: type, name in JSON, and options of JSON.
GoStructs = dict[str, list[tuple[str, str, str]]]

_GO_STRUCT = re.compile(r"type (\w+) struct \{")
_GO_FIELD = re.compile(r"\t(?:\w+\s+)?(\S+)\s+`.*?json:\"([^,\"]*)(?:,([^\"]*))?\"")


@cache
def read_go_structs(source: Source, package: str) -> GoStructs:
    """The structs of a package in Go."""
    structs: GoStructs = {}
    current: list[tuple[str, str, str]] = []
    for file in _GO_FILES.get(package, ("types.go",)):
        for line in source.read(f"{folder_of(package)}/{file}").splitlines():
            opened, found = _GO_STRUCT.match(line), _GO_FIELD.match(line)
            if opened:
                current = structs.setdefault(opened[1], [])
            elif found:
                current.append((found[1], found[2], found[3] or ""))
    return structs


def zeros_of(structs: GoStructs, name: str) -> dict[str, bool]:
    """Whether the server keeps a zero, an empty text or an empty list, by field."""
    zeros: dict[str, bool] = {}
    for kind, each, options in structs.get(name, ()):
        if "inline" in options:
            zeros |= zeros_of(structs, kind)
        else:
            zeros[each] = kind.startswith("*") or "omitempty" not in options
    return zeros


def is_struct(shape: Json) -> bool:
    """Whether a value is neither a scalar that can be zero nor a list or map."""
    text = type_text(shape, "")
    return not text.startswith(("[]", "map ")) and text not in _CAN_BE_ZERO


def numbers_of(messages: Messages, name: str, shown: Iterable[str]) -> dict[str, str]:
    """The numbers of the fields that JSON shows; one of an inlined message has both, as in 2.4."""
    # protobuf spells some names otherwise: aPIGroup, ref for $ref.
    spelled = {re.sub("[$-]", "", each).lower(): each for each in shown}
    numbers: dict[str, str] = {}
    for kind, each, number in messages.get(name, ()):
        if each.lower() in spelled:
            numbers[spelled[each.lower()]] = number
        elif kind in messages:
            inner = numbers_of(messages, kind, shown)
            numbers |= {key: f"{number}.{value}" for key, value in inner.items()}
    return numbers


def tables(source: Source, roots: Iterable[str]) -> dict[str, str]:
    """The text of each table, by file name."""
    schemas = Schemas(source)
    schemas.load()
    by_package: dict[str, set[str]] = {}
    for name in schemas.reachable([*roots, *_EXTRA_ROOTS]):
        by_package.setdefault(name.rpartition(".")[0], set()).add(name)
    found = {f"{each}.txt": schemas.table(each, names) for each, names in by_package.items()}
    return {**found, VERSION_FILE: source.ref.removeprefix("v") + "\n"}


def served_roots() -> list[str]:
    """The types of all kinds that the embedded API server serves."""
    # Here, because the tables must be there before the catalogue can be read.
    from moorage.embedded.kinds.catalogue import catalogue

    return [kind.schema for kind in catalogue() if kind.schema]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("source", type=Path, help="a clone of Kubernetes, bare or not")
    parser.add_argument("version", help="a tag of it, such as v1.36.4")
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    given = parser.parse_args()
    found = tables(Source(given.source, given.version), served_roots())
    stale = [
        name
        for name, text in sorted(found.items())
        if not (TABLES / name).exists() or (TABLES / name).read_text("utf-8") != text
    ]
    for name in stale:
        print(f"{TABLES / name}: {'differs' if given.check else 'written'}")
        if not given.check:
            (TABLES / name).write_text(found[name], "utf-8")
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
