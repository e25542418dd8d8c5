"""Recordings of what a scheduler sees and decides: their format, writing, reading and replay.

A running scheduler writes them, and `moorage replay` decides again. Nothing here talks to an API
server or knows how a scheduler is run.
"""
