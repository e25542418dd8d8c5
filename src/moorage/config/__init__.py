"""The scheduler's configuration: KubeSchedulerConfiguration, feature gates and their defaults.

A file is read strictly: it is used as a whole or refused with every wrong field. No plugin lives
here. The caller says which plugins exist and which args they take.
"""

from moorage.documents.errors import ConfigError, Problem

from .configuration import (
    ClientConnection,
    Configuration,
    LeaderElection,
    ProfileConfiguration,
)
from .duration import Duration
from .extenders import Extender
from .gates import FeatureGates
from .load import default, load, load_mapping
from .plugin_sets import GROUP_POST_FILTER, POINTS, EnabledPlugin, KnownPlugin

__all__ = [
    "GROUP_POST_FILTER",
    "POINTS",
    "ClientConnection",
    "ConfigError",
    "Configuration",
    "Duration",
    "EnabledPlugin",
    "Extender",
    "FeatureGates",
    "KnownPlugin",
    "LeaderElection",
    "Problem",
    "ProfileConfiguration",
    "default",
    "load",
    "load_mapping",
]
