"""Classes of like pods, which share the answers of plugins, and batches, which share best rows.

The signature of a pod says which pods are alike. Nothing here changes a decision.
"""
