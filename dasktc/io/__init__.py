"""Sources of edges, and files of results."""
