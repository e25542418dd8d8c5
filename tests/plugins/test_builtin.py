"""The list of built-in plugins."""

from __future__ import annotations

import pytest

from moorage.config import FeatureGates
from moorage.framework.plugin import Plugin
from moorage.plugins import BUILTIN, REGISTRY
from tests.registered import PLUGINS


def test_every_plugin_is_known_by_its_name() -> None:
    assert list(REGISTRY) == [plugin.name for plugin in BUILTIN]
    assert len(REGISTRY) == len(BUILTIN)


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_every_plugin_can_be_made_with_default_args(plugin: type[Plugin]) -> None:
    args = plugin.Args and plugin.Args()

    assert plugin.create(args, FeatureGates()).name == plugin.__name__
