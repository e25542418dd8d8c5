"""A cluster in memory around an engine: what it is made of, and what becomes of decisions.

It stands in for the API server and the controllers: it fills in defaults, and does at once what an
engine asks for. Simulations, what-if questions, the benchmark and tests use it. Reading manifests,
clocks and reports do not live here.
"""

from .scene import DrainError, Scene
from .world import Claimed, World, place_pod

__all__ = ["Claimed", "DrainError", "Scene", "World", "place_pod"]
