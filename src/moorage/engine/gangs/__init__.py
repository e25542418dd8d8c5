"""Groups of pods that are placed together: tried on the live columns, then kept or taken back.

A group is decided in one step: nothing outside sees a group that is placed in part.
"""
