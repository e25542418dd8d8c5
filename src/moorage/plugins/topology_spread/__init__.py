"""PodTopologySpread: spreads like pods over domains of nodes."""
