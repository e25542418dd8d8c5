"""Controllers: what a cluster does by itself beside scheduling and running pods.

They use the Python interface of the server in the same process. How pods run on nodes does not
belong here, nor does which node a pod goes to.
"""
