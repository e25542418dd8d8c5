"""Extended resources: what plugins count of nodes beyond their allocatable resources."""

from .contract import (
    POOL,
    Admission,
    ExtendedCache,
    ExtendedResource,
    Handle,
    HandleRegistry,
    ObjectPerNode,
)
from .informers import Informer
from .resources import ExtendedLayer, ExtendedResources, ExtendedView

__all__ = [
    "POOL",
    "Admission",
    "ExtendedCache",
    "ExtendedLayer",
    "ExtendedResource",
    "ExtendedResources",
    "ExtendedView",
    "Handle",
    "HandleRegistry",
    "Informer",
    "ObjectPerNode",
]
