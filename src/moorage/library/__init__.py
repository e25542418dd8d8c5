r"""Moorage as a library: a cluster as a value, and questions about it.

    import moorage

    cluster = moorage.read_cluster("dump.yaml")
    print(cluster.explain("shop/web-1").message)

These names are stable: `read_cluster`, `read_live_cluster`, `read_trace`, `ClusterSnapshot` and
what its methods take and return. Everything else may change with any version.
"""

from .readers import read_cluster, read_live_cluster, read_trace
from .snapshot import ClusterSnapshot

__all__ = ["ClusterSnapshot", "read_cluster", "read_live_cluster", "read_trace"]
