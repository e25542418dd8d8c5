"""What is special about each kind: defaults, what may be written, and what deleting means.

Rules look at objects only. What needs other objects to be looked up is admission.
"""
