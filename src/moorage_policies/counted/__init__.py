"""Resources that a configuration alone describes: CountedResources per node, CountedPools."""
