"""A small API server: Kubernetes objects kept in memory or in SQLite, served over HTTP.

It is the try-out and the test double for Mooring, kubectl and other clients, never production.
It knows objects, not decisions: no scheduling lives here. What kubelets do is in `hollow`.
"""
