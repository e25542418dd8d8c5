"""`moorage plugin new`: write the package of a plugin, with a test."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from moorage.documents.errors import InputError

from .rendering import PlainCommand, PlainGroup

app = typer.Typer(help="Help for authors of plugins.", cls=PlainGroup, no_args_is_help=True)

_SUFFIX = ".txt"
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_GROUP = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+")
# What a custom resource is called may have so many characters, its group included.
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class PluginNames:
    """All names that follow from the name of a plugin and the group of its custom resource."""

    plugin: str
    group: str

    @property
    def replacements(self) -> dict[str, str]:
        kebab = "-".join(self._words)
        plural = f"node{''.join(self._words)}"
        singular = plural.removesuffix("s")
        return {
            "Plugin": self.plugin,
            "Resource": f"{self.plugin}OfNode",
            "Kind": f"Node{self.plugin}",
            "plural": f"{singular}s",
            # Kubernetes wants the two to differ from the names of other kinds, not from each other.
            "singular": singular,
            "group": self.group,
            "annotation": f"{self.group}/{kebab}",
            "noun": " ".join(self._words),
            "package": f"moorage-{kebab}",
            "module": f"moorage_{'_'.join(self._words)}",
        }

    @property
    def _words(self) -> list[str]:
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[0-9]+", self.plugin)
        return [part.lower() for part in parts]


@app.callback()
def _options() -> None:
    """Help for authors of plugins."""


@app.command("new", cls=PlainCommand)
def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the plugin, such as RackSlots.", show_default=False
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder to write. [default: the name of the package]"),
    ] = None,
    group: Annotated[
        str,
        typer.Option(
            metavar="GROUP", help="Domain that labels, annotations and API groups begin with."
        ),
    ] = "example.com",
    counting: Annotated[
        bool,
        typer.Option(
            "--counting",
            help="Write a plugin over columns that counts what pods use of a custom resource.",
        ),
    ] = False,
) -> None:
    """Write a package with a plugin, an example and a test that pass as they are.

    The plugin is asked about one pod and one node at a time. With --counting, it counts how much
    of a resource nodes have and pods use, and comes with a custom resource and a role. Existing
    files are not overwritten.
    """
    names = _check(name, group)
    target = folder or Path(names["package"])
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(target, "exists already; name another folder with --folder")
    for place, text in sorted(_render(names, "counting" if counting else "plain")):
        path = target / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path)
    python = shlex.quote(sys.executable)
    print(f"\nTry it: cd {shlex.quote(str(target))}")
    print(f"        {python} -m pip install -e . pytest && {python} -m pytest")


def _check(name: str, group: str) -> dict[str, str]:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise InputError(f"{name!r}: must be a name such as RackSlots, of letters and digits")
    if not _GROUP.fullmatch(group):
        raise InputError(f"--group: {group!r} is not a domain name such as example.com")
    return PluginNames(name, group).replacements


def _render(names: dict[str, str], form: str) -> Iterator[tuple[str, str]]:
    """Yields the files of the package: the path and the content of each."""
    module = names["module"]
    root = files("moorage.cli") / "plugin_template"
    for place, template in (*_templates(root / "both", ""), *_templates(root / form, "")):
        text = re.sub(r"@(\w+)@", lambda match: names[match[1]], template.read_text())
        place = place.removesuffix(_SUFFIX).replace("src/", f"src/{module}/")
        yield place.replace("test_plugin", f"test_{module.removeprefix('moorage_')}"), text
    yield f"src/{module}/py.typed", ""


def _templates(folder: Traversable, place: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _templates(each, f"{place}{each.name}/")
        elif each.name.endswith(_SUFFIX):
            yield f"{place}{each.name}", each
