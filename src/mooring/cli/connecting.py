"""How the flags of a command say to reach an API server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.client import Connection


@dataclass(frozen=True, slots=True)
class Connecting:
    """How to reach an API server."""

    kubeconfig: Path | None = None
    context: str | None = None
    server: str | None = None

    @property
    def is_asked_for(self) -> bool:
        return any(each is not None for each in (self.kubeconfig, self.context, self.server))

    async def connection(self) -> Connection:
        """Reads the kubeconfig; raises CredentialsError."""
        # Here, because manifests need none of it, and it takes long to load.
        from mooring.client import connect

        file = None if self.kubeconfig is None else str(self.kubeconfig)
        return await connect(file, self.context, self.server)
