"""Counts, measures and lists the triangles of a prepared graph from its blocks, and writes the results."""
