"""Questions about a graph: clustering, triads, cliques, cores and trusses, estimates, updates, distributions."""
