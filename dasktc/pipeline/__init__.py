"""From edges to blocks, one module a stage."""
