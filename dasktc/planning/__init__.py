"""Predictions by arithmetic alone: schemes, grids, bytes and seconds, before anything runs."""
