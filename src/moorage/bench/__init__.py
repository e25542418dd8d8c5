"""Measured runs of workloads in scheduler_perf's language: files in, figures out.

What a workload says lives here, and how it is run and measured. What an API server would fill in,
and how results are shown on a terminal, does not.
"""
