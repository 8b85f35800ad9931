"""Planes: how partitions of a graph move in each execution mode."""
