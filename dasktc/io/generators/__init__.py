"""Generated graphs as sources; for some a formula gives the number of triangles."""
