"""Arithmetic only: schemes, grids, bytes and seconds before anything runs."""
