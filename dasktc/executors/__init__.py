"""Executors run stage functions; stores keep their results."""
