"""Bodies that are deep or odd are refused or taken, but never an error of the server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.embedded.serving import MAPS, PODS, Client, Json, pod

DEEP = '{"f:a":' * 500 + "{}" + "}" * 500
ODD = {
    "500 levels": DEEP,
    "500 lists": "[" * 500 + "]" * 500,
    "as deep as kube-apiserver takes": '{"f:a":' * 9_995 + "{}" + "}" * 9_995,
    "as deep as is taken": '{"f:a":' * 190 + "{}" + "}" * 190,
    "more than 64 bits": "9" * 30,
    "more than a float": "1e400",
    "half a character": '"\\ud800"',
    "twice the same key": '{"a":1,"a":2}',
    "no JSON": "NaN",
    "null": "null",
    "a number": "1.5",
}
WRITES = [
    ("POST", "application/json"),
    ("PUT", "application/json"),
    ("PUT", "application/yaml"),
    ("PATCH", "application/merge-patch+json"),
    ("PATCH", "application/strategic-merge-patch+json"),
    ("PATCH", "application/json-patch+json"),
    ("PATCH", "application/apply-patch+yaml"),
]
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"


def _bodies(odd: str) -> Iterator[str]:
    entry = f'{{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{odd}}}'
    spec = '"spec":{"containers":[{"name":"main","image":"i"}]}'
    yield odd
    yield f'{{"metadata":{{"name":"p","managedFields":[{entry}]}},{spec}}}'
    yield f'{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"x":{odd},{spec}}}'
    yield f'{{"metadata":{{"name":"p","annotations":{{"a":{odd}}}}},{spec}}}'
    yield f'{{"metadata":{{"name":"p"}},"spec":{odd}}}'
    yield f'{{"metadata":{odd},{spec}}}'
    yield f'{{"kind":{odd},"metadata":{{"name":"p"}},{spec}}}'


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
async def test_an_odd_body_is_no_error_of_the_server(odd: str, client: Client) -> None:
    for body in _bodies(odd):
        for method, media in WRITES:
            await client.ask("POST", PODS, pod("p"))
            path = PODS if method == "POST" else f"{PODS}/p?fieldManager=m"
            code, answer = await client.ask(method, path, body.encode(), kind=media)
            assert code < 500, (body[:80], method, media, answer)
            assert (await client.ask("GET", PODS))[0] == 200
        await client.delete(f"{PODS}/p?gracePeriodSeconds=0")


@pytest.mark.parametrize(
    "fields",
    [
        {"f:metadata": {"f:labels": {"k:garbage": {"f:a": {}}}}},
        {"f:spec": {"f:containers": {"k:{bad": {".": {}, "f:image": {}}}}},
        {"f:spec": {"f:containers": {"k:3": {"f:image": {}, "f:name": {}}}}},
        {"f:metadata": {"f:finalizers": {"v:bad": {}, ".": {}}}},
    ],
    ids=str,
)
async def test_managed_fields_that_make_no_sense_are_left_out(fields: Json, client: Client) -> None:
    entry = {"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields}
    body = {**pod("p"), "metadata": {"name": "p", "managedFields": [entry]}}
    await client.create(PODS, body)
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}

    code, answer = await client.ask("PATCH", f"{PODS}/p?fieldManager=m", applied, kind=APPLY)

    assert code == 200, answer
    owned = [each["fieldsV1"] for each in answer["metadata"]["managedFields"]]
    assert owned == [{"f:metadata": {"f:labels": {"f:a": {}}}}]


async def test_a_deep_note_of_what_kubectl_applied_is_ignored(client: Client) -> None:
    notes = {"kubectl.kubernetes.io/last-applied-configuration": DEEP * 3}
    await client.create(PODS, {**pod("p"), "metadata": {"name": "p", "annotations": notes}})
    image = {"containers": [{"name": "main", "image": "registry.example/app:2"}]}
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": image}

    code, answer = await client.ask("PATCH", f"{PODS}/p?fieldManager=kubectl", applied, kind=APPLY)

    assert code == 409, answer


async def test_patches_cannot_deepen_an_object_without_end(client: Client) -> None:
    entry = {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {}}
    body = {**pod("p"), "metadata": {"name": "p", "managedFields": [entry]}}
    await client.create(PODS, body)
    value: Json = {}
    for _ in range(100):
        value = {"f:a": value}
    path, codes = "/metadata/managedFields/0/fieldsV1", []
    for _ in range(4):
        patch = [{"op": "add", "path": path, "value": value}]
        code, _ = await client.ask("PATCH", f"{PODS}/p", patch, kind=JSON_PATCH)
        codes.append(code)
        path += "/f:a" * 100
    assert codes == [200, 400, 422, 422]


async def test_copies_of_copies_do_not_fill_the_memory(client: Client) -> None:
    await client.create(MAPS, {"metadata": {"name": "m"}, "data": {"x": "y" * 1000}})
    patch = [{"op": "copy", "from": "", "path": f"/z{number}"} for number in range(40)]

    await client.refused(413, "PATCH", f"{MAPS}/m", patch, kind=JSON_PATCH)
