"""Input and output: sources of edges (files, objects in memory, generators), and files of results."""
