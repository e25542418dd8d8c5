"""Volumes, claims and what surrounds them: objects, indexes, and what is used on rows."""

from .objects import Binding, Reservation, Storage
from .use import CSINodeColumns, VolumeUse

__all__ = [
    "Binding",
    "CSINodeColumns",
    "Reservation",
    "Storage",
    "VolumeUse",
]
