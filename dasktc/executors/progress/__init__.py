"""Progress of a run."""
