"""Real kubectl, command by command: what people type, and what they see."""

from __future__ import annotations

import pytest

from tests.embedded.kubectl import DEPLOYMENT, POD, Kubectl, needs_kubectl

pytestmark = needs_kubectl


def _list(kind: str, *manifests: str) -> str:
    """Objects inside one object, as `kubectl get -o yaml` writes them."""
    items = "".join(f"- {each.strip().replace(chr(10), chr(10) + '  ')}\n" for each in manifests)
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{}}\nitems:\n{items}"


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {a: b}"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wg]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              share: {x-kubernetes-int-or-string: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              names: {type: array, items: {type: string, nullable: true}}
"""
WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 3, share: 50%, free: {a: {b: c}}, names: [d]}
"""
NUMBERS = POD.replace('"1"', "1").replace("name: web", "name: numbers")

#: Commands with what they read and what they must show; those with a ! must fail.
Steps = list[tuple[str, str, str]]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [
                ("apply -f -", _list("List", CONFIG, POD, DEPLOYMENT), "deployment.apps/web creat"),
                ("apply -f -", _list("List", CONFIG, POD), "configmap/config unchanged"),
                ("apply -f -", _list("List", NUMBERS), "pod/numbers created"),
                ("replace -f -", _list("List", CONFIG), "configmap/config replaced"),
                ("delete -f -", _list("List", CONFIG), 'configmap "config" deleted'),
                ("create -f -", _list("List", CONFIG), "configmap/config created"),
            ],
            id="a list of objects",
        ),
        pytest.param(
            [("apply -f -", _list("ConfigMapList", CONFIG), "configmap/config created")],
            id="a list of objects of one kind",
        ),
        pytest.param(
            [("!apply -f -", _list("List", POD.replace("image:", "imag:")), 'field "imag"')],
            id="fields of a list are checked",
        ),
        pytest.param(
            [
                ("apply -f -", DEFINITION, "created"),
                ("apply -f -", _list("List", WIDGET), "widget.example.com/w created"),
                ("!apply -f -", _list("List", WIDGET.replace("3", "x")), "Widget.spec.size"),
            ],
            id="a list of custom resources",
        ),
        pytest.param(
            [("explain pods.spec --output=plaintext-openapiv2", "", "coexistPolicy\t<string>")],
            id="explain from the older document",
        ),
    ],
)
async def test_commands(kubectl: Kubectl, steps: Steps) -> None:
    for command, stdin, shown in steps:
        if command.startswith("!"):
            assert shown in await kubectl.fails(command[1:], stdin)
        else:
            assert shown in await kubectl.run(command, stdin)
