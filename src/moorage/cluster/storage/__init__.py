"""Volumes, claims and other storage objects: their indexes, and their use on rows."""

from .objects import Binding, Reservation, Storage
from .use import CSINodeColumns, VolumeUse

__all__ = [
    "Binding",
    "CSINodeColumns",
    "Reservation",
    "Storage",
    "VolumeUse",
]
