"""Wrong calls of the top-level functions: type checkers find each line that is marked, and no other."""

import dasktc

EDGES = ([0, 1, 2], [1, 2, 0])

dasktc.triangle_count(EDGES, kernel="hub")  # wrong: method=
dasktc.triangle_count(EDGES, backend="gpu")  # wrong: "cuda"
dasktc.triangle_count(EDGES, method="thrust")  # wrong: no such method
dasktc.triangle_count(EDGES, ids="string")  # wrong: "text"
dasktc.triangle_count(EDGES, verify="all")  # wrong: a share
dasktc.triangle_count(EDGES, client=8786)  # wrong: no place
dasktc.triangle_count(EDGES, workers=2)  # wrong: of a cluster
dasktc.prepare(EDGES, duplicates="first")  # wrong: "sum" or "last"
dasktc.prepare(EDGES, run={"retries": 3})  # wrong: RunOptions
dasktc.cluster("every")  # wrong: a number, or "all"
dasktc.Method(proxies="loose")  # wrong: no such proxies
dasktc.RunOptions(distribute="sometimes")  # wrong: no such way
dasktc.Method().kernel = "hub"  # wrong: frozen
dasktc.estimate_triangles(EDGES)  # wrong: estimate
