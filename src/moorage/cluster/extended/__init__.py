"""Extended resources: what plugins count of nodes beyond their allocatable resources."""
