"""Benchmarks: what a count costs here, beside other tools, each measured thing in a process of its own."""
