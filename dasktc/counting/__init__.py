"""Count, measure and list the triangles of a prepared graph's blocks, and write the results."""
