"""The built-in plugins to which the laws of `moorage.testing` apply."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.config import FeatureGates
from moorage.framework.plugin import Filter, Plugin, Score
from moorage.plugins import BUILTIN
from moorage.plugins.coexist_policy import CoexistPolicy, CoexistPolicyArgs
from moorage.testing.declarations import Declarations

FILTERS = [plugin for plugin in BUILTIN if issubclass(plugin, Filter)]
SCORES = [plugin for plugin in BUILTIN if issubclass(plugin, Score)]
EITHER = [plugin for plugin in BUILTIN if issubclass(plugin, Filter | Score)]


#: Args without which a plugin would not serve one of its points.
ARGS: dict[type[Plugin], msgspec.Struct] = {
    CoexistPolicy: CoexistPolicyArgs(prefer_smallest_node=True)
}


def build(kind: type[Plugin]) -> Any:
    """The plugin as the default profile has it, but with everything it can do switched on.

    It sees no more of the cluster than it declares.
    """
    made = kind.create(ARGS.get(kind) or (kind.Args and kind.Args()), FeatureGates())
    return Declarations().limited(made)
