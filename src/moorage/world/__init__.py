"""A cluster in memory around an engine, which performs its decisions at once.

It stands in for the API server and the controllers: it fills in defaults and performs actions.
Simulations, what-if questions, the benchmark and tests use it. Reading manifests, clocks and
reports do not live here.
"""

from .scene import DrainError, Scene
from .world import ClaimedVolume, World, place_pod

__all__ = ["ClaimedVolume", "DrainError", "Scene", "World", "place_pod"]
