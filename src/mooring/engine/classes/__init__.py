"""Classes of like pods: they share the answers of all plugins, and a batch of them the best rows.

Which pods are alike is said by their signature. Nothing here changes a decision.
"""
