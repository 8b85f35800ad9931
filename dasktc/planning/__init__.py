"""Predictions by arithmetic alone: schemes, grids, bytes and seconds, before anything runs."""

from dasktc.planning import assignments, methods, orders, schemes

__all__ = ["assignments", "methods", "orders", "schemes"]
