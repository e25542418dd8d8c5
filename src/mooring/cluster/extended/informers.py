"""Custom objects and those who want to hear of them, and reports of what went wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from mooring.objects.custom import CustomKind, CustomObject

Listener = Callable[[CustomObject], None]


class Informer:
    """Tells a handle of the objects of its custom resource, as they are now and from then on.

    A listener that raises is reported, with the object and what was raised: `DecodeError` names the
    field. It hears of the object again when that changes.
    """

    def __init__(self, objects: Mapping[str, CustomObject], reports: Reports) -> None:
        #: All objects as they were last seen, by key.
        self.objects = objects
        self._reports = reports
        self._listeners: list[tuple[Listener, Listener]] = []

    def listen(self, applied: Listener, removed: Listener) -> None:
        """`applied` is called with every new or changed object, `removed` with those gone."""
        self._listeners.append((applied, removed))
        for item in list(self.objects.values()):
            self._call(applied, item)

    def applied(self, item: CustomObject) -> None:
        for applied, _ in self._listeners:
            self._call(applied, item)

    def removed(self, item: CustomObject) -> None:
        for applied, removed in self._listeners:
            self._call(removed, item)
            self._reports.forget((applied, item.key))

    def _call(self, listener: Listener, item: CustomObject) -> None:
        about = listener, item.key
        try:
            listener(item)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - one bad object must not stop the others
            told = str(error) if isinstance(error, ValueError) else describe(error)
            self._reports.tell(about, f"{item.title}: {told}")
        else:
            self._reports.forget(about)


@dataclass(slots=True)
class _Known:
    kind: CustomKind
    objects: dict[str, CustomObject] = field(default_factory=dict)
    informers: list[Informer] = field(default_factory=list)


class CustomObjects:
    """The objects of the custom kinds that handles asked for; no others are kept."""

    def __init__(self, kinds: Iterable[CustomKind], reports: Reports) -> None:
        self._reports = reports
        self._known: dict[tuple[str, str], _Known] = {}
        for kind in kinds:
            known = self._known.setdefault((kind.api_version, kind.kind), _Known(kind))
            if known.kind != kind:
                raise ValueError(f"{kind.kind} of {kind.api_version}: two handles differ about it")

    def informer(self, kind: CustomKind | None) -> Informer:
        """An informer of its own for a handle; one without a kind never says anything."""
        if kind is None:
            return Informer({}, self._reports)
        known = self._known[kind.api_version, kind.kind]
        informer = Informer(known.objects, self._reports)
        known.informers.append(informer)
        return informer

    def kind_of(self, item: CustomObject) -> CustomKind | None:
        """The kind of an object if anyone asked for it."""
        known = self._known.get((item.api_version, item.kind))
        return None if known is None else known.kind

    def put(self, item: CustomObject) -> CustomObject | None:
        """Adds or updates an object; returns what it was before."""
        known = self._known[item.api_version, item.kind]
        before = known.objects.get(item.key)
        known.objects[item.key] = item
        # What measures may report again and again that nothing has changed.
        if before is None or not _says_the_same(before, item):
            for informer in known.informers:
                informer.applied(item)
        return before

    def remove(self, item: CustomObject) -> CustomObject | None:
        """An object is gone; returns what it was."""
        known = self._known[item.api_version, item.kind]
        before = known.objects.pop(item.key, None)
        if before is not None:
            for informer in known.informers:
                informer.removed(before)
        return before


def _says_the_same(one: CustomObject, other: CustomObject) -> bool:
    return (one.fields, one.labels, one.annotations) == (
        other.fields,
        other.labels,
        other.annotations,
    )


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
