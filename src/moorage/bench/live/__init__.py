"""Workloads on an API server: objects go there by HTTP, and any scheduler may place the pods.

The harness does what controllers and kubelets would: there are none of them.
"""
