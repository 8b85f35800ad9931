"""Wrong uses of the public interface: type checkers find each line that is marked, and no other."""

import polars as pl

import dasktc


def results(result: dasktc.TriangleCount) -> None:
    print(result.probes)  # wrong: in result.stats
    result.stats.probes = 1  # wrong: frozen
    text: str = result  # wrong: a number
    print(text, result.summary() + "")  # wrong: prints, and returns nothing


def graphs(graph: dasktc.Graph) -> None:
    graph.triangles(frame="spark")  # wrong: no such frame
    print(graph.triangles(frame="polars").index)  # wrong: Polars has no index
    table: pl.DataFrame = graph.edge_support()  # wrong: a pandas frame
    directed: bool = graph.is_directed  # wrong: a method
    graph.truss("3")  # wrong: k is a number
    graph.trussness()  # wrong: graph.truss()
    graph.oriented_edges(edges=[(0, 1)])  # wrong: takes none
    print(graph.blocks, table, directed)  # wrong: private
