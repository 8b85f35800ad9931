"""Samples of how to start a Dask cluster, ready to be changed: scripts and manifests."""
