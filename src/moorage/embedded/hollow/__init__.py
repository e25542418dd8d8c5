"""Hollow nodes: kubelets without containers, all of them in one loop, against the store itself.

They do what the rest of a cluster sees of a kubelet: nodes are ready and renew their leases, pods
that come to a node are admitted or rejected, run, end and go. Nothing is decided for a cluster as
a whole here.
"""
