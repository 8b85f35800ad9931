"""From a source's edges to CSR blocks: `stages` compute, `planes` move partitions, `prepare` has the order."""
