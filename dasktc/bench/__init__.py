"""Benchmarks of counting against other tools; every measurement runs in a process of its own."""
