"""Mooring is a Kubernetes scheduler that decides over NumPy columns."""

__version__ = "0.1.0"
