"""Counts the triangles of a prepared graph from its blocks: tasks, checkpoints, the check of wedges, and results."""
