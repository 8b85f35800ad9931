"""Stage functions as Dask tasks: submission, flow control, futures, faults."""
