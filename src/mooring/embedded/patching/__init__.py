"""Patches: from an object and a description of changes to another object."""
