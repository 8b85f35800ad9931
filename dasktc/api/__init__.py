"""The public functions: count, prepare, plan, and the NetworkX backend."""
