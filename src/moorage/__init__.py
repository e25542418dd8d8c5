"""Moorage is a Kubernetes scheduler that decides over NumPy columns.

As a library: `read_cluster` and `read_live_cluster` read a cluster, `ClusterSnapshot` answers
questions about it, and `read_trace` reads which pods come and go. See docs/library.md. Everything
else may change with any version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.library import ClusterSnapshot, read_cluster, read_live_cluster, read_trace

__all__ = ["ClusterSnapshot", "__version__", "read_cluster", "read_live_cluster", "read_trace"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Loads the library when it is first used, so that importing the package takes no time."""
    if name in __all__:
        return getattr(import_module("moorage.library"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names, also those that are not loaded yet."""
    return sorted(__all__)
