"""Answers of a graph: triangles by vertex and by edge, lists of them, and their frames."""
