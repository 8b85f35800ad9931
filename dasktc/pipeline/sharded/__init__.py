"""The same stages for vertex arrays that exceed one process."""
