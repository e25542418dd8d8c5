"""A page that shows a scheduler live: an engine's state as compact JSON, and the page over it.

It is read-only: nothing here changes an engine, and no request writes. The server that mounts the
page decides who may look. Commands and the connection to an API server do not live here.
"""

from .page import Explain, StatusPage
from .page_access import PageAccess

__all__ = ["Explain", "PageAccess", "StatusPage"]
