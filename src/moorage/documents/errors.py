"""What can go wrong, what is wrong with a document, and where.

MoorageError          what users are told in a line or two, without a traceback
├── InputError        what was given cannot be used
│   ├── ConfigError       a configuration, with every problem in it
│   ├── DecodeError       an object that cannot be read
│   ├── WorkloadError     a workload of the benchmark
│   ├── CredentialsError  how to reach an API server
│   ├── RegistryError     plugins that cannot be found or loaded
│   ├── CertificateError  certificates to serve with
│   ├── ListenError       an address to serve at
│   ├── KubeconfigError   the kubeconfig that `up` writes
│   ├── ShapeError        the nodes that `up` makes
│   ├── DataDirError      what `up` has stored
│   └── ExtenderUnusable  the certificates of an extender
├── PluginError       a plugin broke, or met what it must not guess about
│   ├── BrokenRowsError   on some nodes only
│   └── ExtenderFailed    an extender in its place
├── CallFailed        an extender gave no usable answer
├── ReplyError        what an extender answered cannot be read
└── ClientError       a request to an API server did not succeed
    ├── ApiError          the server answered, and refused
    ├── Unreachable       nothing was sent, so trying again is safe
    │   └── Withheld          because this client may not write any more
    ├── TooLarge          the answer is larger than we are willing to keep
    └── OutcomeUnknown    sent, but not answered: a write may have happened
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

# Enough to recognise a value; a pasted certificate does not fill the screen.
_MAX_CHARACTERS = 80

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")

# Python refuses to write out integers of many thousand digits.
_MAX_BITS = 256


#: What code of other authors may raise without ending the process. What a plugin raises at an
#: extension point is caught there, except for `SystemExit`, which it leaves to the outer fences:
#: around an attempt, around an event, and in the queue. So `sys.exit` does not end the scheduler.
STOPPED = (Exception, SystemExit)


class MoorageError(Exception):
    """An error for users in a line or two. The text says what is wrong and where."""


class InputError(MoorageError):
    """Input that cannot be used. The text is one line: file, object, field, what is wrong."""

    def __init__(self, *parts: object) -> None:
        super().__init__(": ".join(filter(None, map(str, parts))))


class ListenError(InputError):
    """An address at which nothing can be served."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        # An error of asyncio repeats the address, and ends with what the system says.
        reason = (error.strerror or str(error)).rpartition(": ")[2].lower()
        place = f"[{host}]" if ":" in host else host
        super().__init__(f"cannot listen on {place}:{port}", reason)


class DecodeError(InputError, ValueError):
    """An object that cannot be read: which field of it, if that is known, and what is wrong."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(field, message)
        self.message = message
        self.field = field


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a text: documents count from 1, items of lists from 0."""

    file: str
    document: int
    path: str = ""
    #: The line on which its document begins, from 1; 0 is not known.
    line: int = field(default=0, compare=False)

    def item(self, index: int) -> Location:
        """Returns the place of an item of the list at this place."""
        path = f"{self.path}{'.' * bool(self.path)}items[{index}]"
        return replace(self, path=path)

    def __str__(self) -> str:
        place = f"{self.file}: document {self.document}"
        return f"{place}: {self.path}" if self.path else place


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong field; a path of "" means the document as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Problems:
    """Collects problems, so that all of them can be reported at once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def add(self, path: str, message: str) -> None:
        self._found[Problem(path, message)] = None

    def add_found(self, found: Iterable[Problem]) -> None:
        """Adds what a check of the values found, except for consequences of earlier problems.

        A field that could not be read has its default during the check, so a problem at, above or
        below such a field says nothing about the document.
        """
        unread = [problem.path for problem in self._found]
        self._found.update(
            dict.fromkeys(
                problem
                for problem in found
                if not any(_overlap(problem.path, path) for path in unread)
            )
        )

    def raise_any(self, source: str) -> None:
        """Raises ConfigError if there is any problem."""
        if self._found:
            raise ConfigError(tuple(self._found), source)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class ConfigError(InputError):
    """A configuration that cannot be used; the text names every problem, one per line."""

    def __init__(self, problems: tuple[Problem, ...], source: str = "<config>") -> None:
        super().__init__(source)
        self.problems = problems
        self.source = source

    def __str__(self) -> str:
        return "\n".join(f"{self.source}: {problem}" for problem in self.problems)


def child(path: str, name: str) -> str:
    """Joins a path and the name, or the path, of something below it."""
    if not path or not name or name.startswith("["):
        return path + name
    return f"{path}.{name}"


def item(path: str, index: int) -> str:
    """Returns the path of an element of a list."""
    return f"{path}[{index}]"


def entry(path: str, key: str) -> str:
    """Returns the path of a value by its key, as users write it: labels["example.com/a"]."""
    return child(path, key) if _PLAIN_KEY.fullmatch(key) else f'{path}["{key}"]'


def path_of(steps: Iterable[str | int]) -> str:
    """Returns the path that keys and indices lead along."""
    path = ""
    for step in steps:
        path = item(path, step) if isinstance(step, int) else entry(path, step)
    return path


def describe(value: object) -> str:
    """Returns a value as the file would write it, short enough for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_shorten(value)}"'
        case int() if value.bit_length() > _MAX_BITS:
            return "an integer out of all range"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case int() | float():
            return str(value)
        case _:
            return f"a {type(value).__name__}"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"


def _overlap(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer.startswith(shorter) and longer[len(shorter) :][:1] in ("", ".", "[")
