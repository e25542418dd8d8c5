"""A progress bar for those who wait: on a terminal, and only when it takes long."""

from __future__ import annotations

import sys
from threading import Timer
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

# What is over sooner needs no bar, and need not pay for loading one.
_PATIENCE_SECONDS = 1.0


class ProgressBar:
    """Shows on standard error what is going on, from a thread of its own."""

    def __init__(self) -> None:
        self._timer = Timer(_PATIENCE_SECONDS, self._show)
        self._timer.daemon = True
        self._bar: Progress | None = None
        self._title, self._total, self._done = "reading", 0, 0

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        if self._bar is not None:
            self._bar.stop()

    def stage(self, title: str, total: int = 0) -> None:
        """Begins to do something else; a total of 0 is unknown."""
        self._title, self._total, self._done = title, total, 0
        if self._bar is not None:
            self._bar.reset(
                self._bar.task_ids[0], description=title, total=total or None, completed=0
            )

    def update(self, done: int) -> None:
        """Tells how much is done."""
        self._done = done
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(console=Console(stderr=True), transient=True)
        bar.add_task(self._title, total=self._total or None, completed=self._done)
        bar.start()
        self._bar = bar
