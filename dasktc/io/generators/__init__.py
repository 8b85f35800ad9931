"""Generated graphs as sources; of some the number of triangles is known by arithmetic."""
