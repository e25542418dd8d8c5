"""What a scheduler tells, to people and programs of this machine that were let in.

By plain HTTP. No browser trusts a certificate that was made a moment ago, and a try-out must not
teach anybody to click warnings away. What goes over loopback can be read by the administrator
alone, and browsers treat it like HTTPS. The cookie that lets a browser in goes without its `secure`
flag then, because not all browsers keep such a cookie over HTTP; scripts cannot read it, and other
sites cannot have it sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mooring.web import Entry
from mooring.web.page import PREFIX

from .connections import ConnectionLimits, accepting
from .endpoints import Content, guarded

_LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def loopback_site(content: Content, entry: Entry) -> AsyncIterator[str]:
    """Serves on a free port for as long as the context lasts; gives the address."""
    if content.page is None:
        raise ValueError("there is no page to let anybody in to")
    app = guarded(content, entry.guard(content.page, PREFIX))
    async with accepting(app, (_LOOPBACK, 0), ConnectionLimits()) as port:
        yield f"http://{_LOOPBACK}:{port}"
