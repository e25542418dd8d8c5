"""What whoever runs the scheduler should know, each thing once."""

from __future__ import annotations

from collections.abc import Hashable


def describe(error: BaseException) -> str:
    """The kind and the text of what some plugin raised."""
    name = type(error).__name__
    try:
        text = f"{name}: {error}"
    except BaseException:  # noqa: BLE001 - the text of an exception is the plugin's code as well
        return name
    # An event or a status cannot hold half a surrogate pair.
    return text.encode(errors="backslashreplace").decode()


class Reports:
    """Texts that wait to be told. The same is not told again until it was forgotten."""

    def __init__(self) -> None:
        self._told: dict[Hashable, str] = {}
        self._waiting: list[str] = []

    @property
    def are_waiting(self) -> bool:
        return bool(self._waiting)

    def tell(self, about: Hashable, text: str) -> None:
        if self._told.get(about) != text:
            self._told[about] = text
            self._waiting.append(text)

    def forget(self, about: Hashable) -> None:
        """It is over: should it begin again, it is news."""
        self._told.pop(about, None)

    def take(self) -> list[str]:
        """All that has not been told yet."""
        taken, self._waiting = self._waiting, []
        return taken
