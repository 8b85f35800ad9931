"""The stages from a source's edges to CSR blocks, one module a stage; `prepare` runs them in order."""
