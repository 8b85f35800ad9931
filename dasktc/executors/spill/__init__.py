"""Results in files."""
