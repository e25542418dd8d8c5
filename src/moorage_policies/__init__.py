"""Policies: plugins for more than kube-scheduler decides. Entry points make them known.

They import `moorage.plugin` alone, as plugins of others do.
"""
