"""Traces: pods that come and go over days, scheduled in virtual time, and figures about it."""
