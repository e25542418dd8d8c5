"""Devices: the pools that drivers publish, and what claims hold of them."""
