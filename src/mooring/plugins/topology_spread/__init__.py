"""PodTopologySpread: like pods are spread over domains of nodes."""
