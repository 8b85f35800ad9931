"""Who runs a stage function, and where its results stand."""
