"""Results in device memory, pinned host memory and files."""
