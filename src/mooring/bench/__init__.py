"""Measured runs of the deciding half: no API server, no clock inside, every pod placed."""
