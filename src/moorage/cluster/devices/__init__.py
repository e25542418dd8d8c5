"""Devices: the pools that drivers publish, and the devices that claims hold."""
