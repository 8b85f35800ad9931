"""Input and output: sources of edges (files, objects in memory, generators), and output files."""
