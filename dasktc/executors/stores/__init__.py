"""Results in files, on a local or a shared disk."""
