"""The demo opens the page where there is a desktop, and never waits for a browser."""

from __future__ import annotations

import threading
import webbrowser

import pytest

from moorage.cli.demo import browse

_PAGE = "http://127.0.0.1:1/ui/"


class Terminal:
    def __init__(self, *, real: bool) -> None:
        self._real = real

    def isatty(self) -> bool:
        return self._real


class Slow(webbrowser.BackgroundBrowser):
    """One that does not come back before it is let go."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.opened = threading.Event()
        self.door = threading.Event()

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        assert url == _PAGE
        self.opened.set()
        return self.door.wait(60)


@pytest.mark.parametrize(
    ("terminal", "display", "browser"),
    [
        pytest.param(False, ":0", Slow(), id="no terminal"),
        pytest.param(True, "", Slow(), id="no display"),
        pytest.param(True, ":0", webbrowser.GenericBrowser("w3m"), id="a text browser"),
        pytest.param(True, ":0", webbrowser.Elinks("elinks"), id="another text browser"),
        pytest.param(True, ":0", None, id="no browser"),
    ],
)
def test_it_is_left_alone(
    terminal: bool,
    display: str,
    browser: webbrowser.BaseBrowser | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _arrange(monkeypatch, terminal, display, browser)

    assert not browse(_PAGE)


def test_it_opens_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Slow()
    _arrange(monkeypatch, True, ":0", browser)

    assert browse(_PAGE)

    assert browser.opened.wait(60)
    browser.door.set()


def _arrange(
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    display: str,
    browser: webbrowser.BaseBrowser | None,
) -> None:
    def get() -> webbrowser.BaseBrowser:
        if browser is None:
            raise webbrowser.Error("could not locate runnable browser")
        return browser

    monkeypatch.setattr("sys.stdout", Terminal(real=terminal))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(webbrowser, "get", get)
