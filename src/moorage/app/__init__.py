"""The running scheduler: it follows a cluster, decides, and carries out its decisions."""
