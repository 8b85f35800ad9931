"""Vertex vectors in shards, for graphs whose vertex arrays exceed one process."""
