"""Runs the program of a kubeconfig that prints credentials."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec

from .connection import CredentialsError

# A program that asks somebody, or waits for a network that is down, must not hold us for ever.
_MOST_SECONDS = 60.0

# Credentials are looked at once a minute, and the clocks of the two machines differ.
_MARGIN = timedelta(minutes=5)


class ExecProgram(msgspec.Struct, frozen=True, rename="camel"):
    """The program that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None


class Output(msgspec.Struct, frozen=True, rename="camel"):
    """The credentials that a program printed: a token, a certificate or both."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    @property
    def has_expired(self) -> bool:
        end = self.expiration_timestamp
        return end is not None and end - _MARGIN <= datetime.now(UTC)


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    status: Output


class Execution:
    """A program, and what it printed last."""

    def __init__(self, program: ExecProgram, folder: Path, at: str) -> None:
        self._program = program
        self._at = at
        # As kubectl reads it: a path starts at the kubeconfig, a bare name is found in $PATH.
        command = program.command
        self._command = str(folder / command) if "/" in command else command
        self._output: Output | None = None

    async def run(self, rejected: bool) -> Output:
        """Returns credentials: the last ones until they expire or are rejected.

        Raises CredentialsError.
        """
        if self._output is None or rejected or self._output.has_expired:
            try:
                async with asyncio.timeout(_MOST_SECONDS):
                    self._output = self._read(await self._execute())
            except TimeoutError as error:
                text = f"{self._at}: no answer in {_MOST_SECONDS:g} s"
                raise CredentialsError(text) from error
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise CredentialsError(f"{self._at}: {error}") from error
        return self._output

    async def _execute(self) -> bytes:
        asked: dict[str, Any] = {
            "apiVersion": self._program.api_version,
            "kind": "ExecCredential",
            "spec": {"interactive": os.isatty(0)},
        }
        process = await asyncio.create_subprocess_exec(
            self._command,
            *(self._program.args or ()),
            env={
                **os.environ,
                **{each["name"]: each["value"] for each in self._program.env or ()},
                "KUBERNETES_EXEC_INFO": json.dumps(asked),
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            printed, complaint = await process.communicate()
        except asyncio.CancelledError:
            if process.returncode is None:
                process.kill()
            raise
        if process.returncode:
            said = complaint.decode(errors="replace").strip()
            raise ValueError(f"{self._command} ended with {process.returncode}: {said}")
        return printed

    def _read(self, printed: bytes) -> Output:
        credential = msgspec.json.decode(printed, type=_Credential)
        wanted, output = self._program.api_version, credential.status
        if credential.api_version != wanted:
            raise ValueError(f"printed apiVersion {credential.api_version!r}, not {wanted!r}")
        if not output.token and not (output.client_certificate_data and output.client_key_data):
            raise ValueError("printed neither a token nor a certificate with its key")
        return output
