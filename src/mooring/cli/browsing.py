"""Opening a page in the user's browser, where that helps."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser

# Elsewhere there is a desktop only if one of these says so.
_WITH_DESKTOP = ("darwin", "win32")
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def browse(address: str) -> bool:
    """Opens an address where somebody sits at a desktop; whether it tries to."""
    if not sys.stdout.isatty() or not _has_desktop():
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if _is_of_text(browser):
        return False
    # A browser may take its time, or be broken: neither is a reason to wait for it.
    threading.Thread(target=browser.open, args=(address,), daemon=True).start()
    return True


def _has_desktop() -> bool:
    return sys.platform in _WITH_DESKTOP or any(os.environ.get(each) for each in _DISPLAYS)


def _is_of_text(browser: webbrowser.BaseBrowser) -> bool:
    """Whether it would take over the terminal, and use up the code of the address."""
    if isinstance(browser, webbrowser.UnixBrowser):
        return not browser.background
    return isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
        browser, webbrowser.BackgroundBrowser
    )
