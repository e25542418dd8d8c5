"""A scheduler as the flags of `mooring run` describe it."""

from __future__ import annotations

import socket
import uuid
from pathlib import Path

import uvloop

from mooring.app import logs
from mooring.app.authorization import AuthorizationSettings
from mooring.app.certificates import CertificateSettings
from mooring.app.observations import Observations
from mooring.app.recorded import Setup
from mooring.app.run import Record, Settings, schedule
from mooring.app.segments import RecordSettings
from mooring.app.tls_site import ServingSettings
from mooring.config import FeatureGates
from mooring.objects.quantity import Quantity
from mooring.simulate.problems import InputError

from .connecting import Connecting
from .options import LogFormat, LogLevel
from .scheduler import Deciding

__all__ = [
    "CertificateSettings",
    "Connecting",
    "Deciding",
    "Settings",
    "authorization",
    "configure_logs",
    "identity",
    "recording",
    "scheduled",
    "serving",
]


def configure_logs(log_format: LogFormat, log_level: LogLevel, verbosity: int) -> None:
    """A verbosity goes before a level."""
    level = logs.level_of(verbosity) if verbosity else log_level.value
    logs.configure(logs.LogSettings(logs.Format(log_format.value), level))


def identity() -> str:
    """A name that no other replica has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def serving(address: str, port: int, certificate: CertificateSettings) -> ServingSettings | None:
    return ServingSettings(address, port, certificate) if port else None


def authorization(always_allow_paths: str) -> AuthorizationSettings:
    return AuthorizationSettings(tuple(always_allow_paths.split(",")))


def recording(file: Path | None, most: str, deciding: Deciding) -> Record | None:
    """Where to record; raises InputError about how much."""
    return None if file is None else Record(file, _setup(deciding), _limits(most))


def _setup(deciding: Deciding) -> Setup:
    """What a replay must know to decide the same."""
    text = deciding.text
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return Setup(config=text, feature_gates=dict(FeatureGates.from_text(deciding.feature_gates)))


def _limits(size: str) -> RecordSettings:
    try:
        most = Quantity.parse(size).value
    except ValueError as error:
        raise InputError("--record-max-size", str(error)) from error
    return RecordSettings(most_bytes=most)


def scheduled(connecting: Connecting, deciding: Deciding, settings: Settings) -> int:
    """Schedules until stopped; the exit code."""
    observations = Observations()
    scheduler = deciding.engine(observations)

    async def main() -> int:
        connection = await connecting.connection()
        return await schedule(connection, scheduler, observations, settings)

    return uvloop.run(main())
