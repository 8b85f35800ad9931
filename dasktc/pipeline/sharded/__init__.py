"""Vectors of vertices in shards, where one process cannot hold them whole."""
