"""The tables of fields are what the tool makes of Kubernetes' own documents."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from moorage.embedded.api.schema import KUBERNETES_VERSION
from tools.schema_tables import TABLES, Schemas, Source, served_roots, tables

CLONE = os.environ.get("MOORAGE_TEST_KUBERNETES", "")

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
CORE = "io.k8s.api.core.v1"
SCHEMAS: dict[str, Any] = {
    f"{META}.ObjectMeta": {
        "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}
    },
    f"{CORE}.Thing": {
        "x-kubernetes-group-version-kind": [{"kind": "Thing"}],
        "required": ["parts"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}]},
            "parts": {
                "type": "array",
                "items": {"$ref": f"#/components/schemas/{CORE}.Part"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-strategy": "merge,retainKeys",
                "x-kubernetes-patch-merge-key": "name",
            },
            "path": {"type": "string", "default": "/"},
        },
    },
    f"{CORE}.Part": {
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "name": {"type": "string", "default": ""},
            "since": {"$ref": f"#/components/schemas/{META}.Time"},
            "size": {"type": "integer", "format": "int32"},
        },
    },
    f"{META}.Time": {"type": "string"},
}
PROTO = """
message Thing {
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
  repeated Part parts = 2;
  optional Source source = 3;
}
message Source {
  optional string path = 7;
}
message Part {
  optional string name = 1;
  optional int32 size = 4;
}
message ObjectMeta {
  map<string, string> labels = 11;
}
"""


GO = """
type Thing struct {
\tmetav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
\tParts []Part `json:"parts" protobuf:"bytes,2,rep,name=parts"`
\tSource `json:",inline" protobuf:"bytes,3,opt,name=source"`
}
type Source struct {
\tPath *string `json:"path,omitempty" protobuf:"bytes,7,opt,name=path"`
}
type Part struct {
\tName string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
\tSince metav1.Time `json:"since"`
\tSize int32 `json:"size" protobuf:"varint,4,opt,name=size"`
}
type ObjectMeta struct {
\tLabels map[string]string `json:"labels,omitempty" protobuf:"bytes,11,rep,name=labels"`
}
"""


class MadeUp(Source):
    def read(self, path: str) -> str:
        if path.endswith(".go"):
            return GO
        if path.endswith(".proto"):
            return PROTO
        found = SCHEMAS if path.endswith("api__v1_openapi.json") else {}
        return json.dumps({"components": {"schemas": found}})


def test_a_table_has_types_numbers_and_how_lists_are_merged() -> None:
    schemas = Schemas(MadeUp(Path(), ""))
    schemas.load()
    found = schemas.reachable(["core.v1.Thing"])

    assert found == {"core.v1.Part", "core.v1.Thing", "meta.v1.ObjectMeta"}
    assert schemas.table("core.v1", found - {"meta.v1.ObjectMeta"}) == (
        "Part | atomic\n"
        "  name: string = 1\n"
        "  since: time\n"
        "  size: int32 = 4 | zero\n"
        "\n"
        "Thing\n"
        "  metadata: meta.v1.ObjectMeta = 1\n"
        "  parts: []Part = 2 | merge=name retainKeys keys=name required zero\n"
        '  path: string = 3.7 | default="/" zero\n'
    )
    assert schemas.table("meta.v1", ["meta.v1.ObjectMeta"]) == (
        "ObjectMeta\n  labels: map string = 11\n"
    )


@pytest.mark.skipif(not CLONE, reason="needs MOORAGE_TEST_KUBERNETES, a clone of Kubernetes")
def test_the_tables_are_what_the_tool_makes_again() -> None:
    made = tables(Source(Path(CLONE), f"v{KUBERNETES_VERSION}"), served_roots())

    assert made == {each.name: each.read_text("utf-8") for each in TABLES.iterdir()}
