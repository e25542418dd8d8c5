"""How the server is to run."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from .tables import HISTORY_LIMIT

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where to listen, whom to let in, where to keep objects."""

    host: str = LOOPBACK
    #: 0 takes a free one.
    port: int = 0
    #: Whoever knows it may do everything; nobody else may do anything.
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    #: kubectl sends its token over TLS only.
    tls: bool = True
    #: Keeps objects across restarts; without it they live in memory.
    data_dir: Path | None = None
    #: The gate of `spec.coexistPolicy`.
    coexist: bool = True
    history_limit: int = HISTORY_LIMIT
    #: How often a quiet watch tells how far it has come.
    bookmark_seconds: float = 60.0
