"""Runs real kubectl against a server of the test."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from moorage.embedded.server import Server
from tests.patience import PATIENCE_SECONDS

#: kubectl of the path, and those that the variable names, parted as in a path.
BINARIES = [
    found
    for name in ("kubectl", *os.environ.get("MOORAGE_TEST_KUBECTLS", "").split(os.pathsep))
    if name and (found := shutil.which(name))
]

needs_kubectl = pytest.mark.skipif(not BINARIES, reason="needs kubectl on the path")

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {note: before}}
spec:
  containers:
  - {name: main, image: "registry.example/web:1", resources: {requests: {cpu: "1"}}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "registry.example/web:1"}]}
"""

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
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1}
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


@dataclass(frozen=True, slots=True)
class Kubectl:
    """A kubectl with the configuration for one server."""

    binary: str
    folder: Path

    @classmethod
    def of(cls, binary: str, running: Server, folder: Path) -> Kubectl:
        (folder / "kubeconfig").write_text(json.dumps(running.kubeconfig))
        return cls(binary, folder)

    async def run(self, command: str, stdin: str = "") -> str:
        """What a command prints; it must succeed."""
        code, output = await self.attempt(command, stdin)
        assert code == 0, f"kubectl {command}: {output}"
        return output

    async def fails(self, command: str, stdin: str = "") -> str:
        """What a command prints that must fail."""
        code, output = await self.attempt(command, stdin)
        assert code != 0, f"kubectl {command}: {output}"
        return output

    async def attempt(self, command: str, stdin: str = "") -> tuple[int | None, str]:
        process = await self.start(command)
        async with asyncio.timeout(PATIENCE_SECONDS):
            output, _ = await process.communicate(stdin.encode())
        return process.returncode, output.decode()

    async def start(self, command: str) -> asyncio.subprocess.Process:
        """A command that goes on, such as a watch."""
        if command.startswith("wait "):
            # By itself it waits for half a minute.
            command = f"{command} --timeout={PATIENCE_SECONDS:g}s"
        return await asyncio.create_subprocess_exec(
            self.binary,
            *command.split(),
            env={
                "KUBECONFIG": str(self.folder / "kubeconfig"),
                "HOME": str(self.folder),
                "PATH": os.environ["PATH"],
                # `kubectl edit` puts this where an editor would be.
                "KUBE_EDITOR": "sed -i s/before/after/",
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
