"""What-if without a cluster: manifests in, a transcript of decisions out, in virtual time.

The engine is the one that schedules for real. No clock, no network and no printing live here.
"""
