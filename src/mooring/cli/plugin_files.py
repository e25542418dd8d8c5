"""Plugins in files of the user: a policy to try, before it is worth a package."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from mooring.engine.registry import RegistryError, check
from mooring.framework.plugin import Plugin


def plugins_of(files: Iterable[Path]) -> tuple[type[Plugin], ...]:
    """The plugin classes that files define, in their order; helpers begin with an underscore."""
    return tuple(plugin for file in files for plugin in _plugins(file))


def _plugins(file: Path) -> list[type[Plugin]]:
    module = _module(file)
    found = [
        check(each, str(file), name)
        for name, each in vars(module).items()
        if isinstance(each, type)
        and issubclass(each, Plugin)
        # What the file imports are the base classes, or somebody else's plugins.
        and each.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if not found:
        raise RegistryError(f"{file}: has no Plugin class")
    return found


def _module(file: Path) -> ModuleType:
    # With the path as its name, errors about its classes say where they are.
    spec = spec_from_file_location(str(file), file)
    if spec is None or spec.loader is None:
        raise RegistryError(f"{file}: must be a Python file, ending in .py")
    module = module_from_spec(spec)
    # Dataclasses look for the module that they are in.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except OSError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise RegistryError(f"{file}: cannot be loaded: {told}") from error
    return module
