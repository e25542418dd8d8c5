"""`moorage plugin new`: write the package of a plugin that counts an extended resource."""

from __future__ import annotations

import re
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
            metavar="GROUP", help="API group of the custom resource and of the annotation."
        ),
    ] = "example.com",
) -> None:
    """Write a package with a plugin, its custom resource and role, and a test.

    The plugin counts a resource that a custom resource describes: how much of it nodes have, and
    how much pods use. The test passes as it is. Existing files are not overwritten.
    """
    names = _check(name, group)
    target = folder or Path(names["package"])
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(target, "exists already; name another folder with --folder")
    for place, text in sorted(_render(names)):
        path = target / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path)
    print(f"\nTry it: cd {target} && pip install -e . && pytest")


def _check(name: str, group: str) -> dict[str, str]:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise InputError(f"{name!r}: must be a name such as RackSlots, of letters and digits")
    if not _GROUP.fullmatch(group):
        raise InputError(f"--group: {group!r} is not a domain name such as example.com")
    return PluginNames(name, group).replacements


def _render(names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the files of the package: the path and the content of each."""
    module = names["module"]
    for place, template in _templates(files("moorage.cli") / "plugin_template", ""):
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
