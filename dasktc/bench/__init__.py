"""Benchmarks of counting against other tools; each measurement runs in a process of its own."""
