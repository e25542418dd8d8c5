"""Mooring is a Kubernetes scheduler that decides over NumPy columns.

As a library: `read_cluster` reads a cluster and `ClusterSnapshot` answers questions about it. See
docs/library.md. Everything else may change with any version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.library import ClusterSnapshot, read_cluster

__all__ = ["ClusterSnapshot", "__version__", "read_cluster"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Loads the library when it is first used, so that importing the package takes no time."""
    if name in ("ClusterSnapshot", "read_cluster"):
        return getattr(import_module("mooring.library"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
