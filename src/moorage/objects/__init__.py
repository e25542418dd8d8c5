"""Frozen typed Kubernetes values: what scheduling reads of pods, nodes and their neighbours.

Everything here is a value: decoded once at the edge, never changed, shared freely.
No cluster state, no decisions and no I/O live here.
"""
