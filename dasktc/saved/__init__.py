"""Saved graphs: a prepared graph in a folder, which workers write, and read again."""
