"""Groups of pods that are placed together: tried on the live columns, then kept or taken back.

All of a group is decided in one step: nothing outside sees a group that is placed in part.
"""
