"""Graphs that are generated, with known answers."""
