"""A page to watch a scheduler with: what an engine knows, as compact JSON, and the page over it.

Read-only: nothing here changes an engine, and no request writes. The server of the page decides who
may look; commands and the connection to an API server do not live here.
"""

from .entry import Entry
from .page import Explain, StatusPage

__all__ = ["Entry", "Explain", "StatusPage"]
