"""A small API server: Kubernetes objects kept in memory or in SQLite, served over HTTP.

It is the try-out and the test double for Mooring, kubectl and other clients, never production.
It knows objects, not decisions: no scheduling, no controllers and no kubelets live here.
"""
