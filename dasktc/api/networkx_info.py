"""Description of the backend, which NetworkX reads at its every import: nothing heavy may be imported here."""

from __future__ import annotations

from typing import Any

__all__ = ["get_info"]

PAIRS = "Graphs with loops are not supported. Without ebunch, pairs come in another order."
FUNCTIONS = {
    "adamic_adar_index": PAIRS,
    "all_triangles": "Triangles come in another order.",
    "average_clustering": "With weights or directions in this process.",
    "clustering": "With weights or directions in this process.",
    "core_number": "In this process; directed graphs are not supported.",
    "generalized_degree": "",
    "jaccard_coefficient": PAIRS,
    "k_truss": "In this process.",
    "resource_allocation_index": PAIRS,
    "square_clustering": "In this process; directed graphs are not supported.",
    "transitivity": "Directed graphs are not supported.",
    "triadic_census": "In this process.",
    "triangles": "Of a multigraph, only all nodes at once.",
}
"""Notes on the functions of the backend."""


def get_info() -> dict[str, Any]:
    """Describe the backend.

    Returns
    -------
    dict
        In the form of NetworkX's entry point `networkx.backend_info`.
    """
    return {
        "backend_name": "dasktc",
        "project": "dasktc",
        "package": "dasktc",
        "short_summary": "Exact triangle counting with Dask.",
        "functions": {
            name: {"additional_docs": f"Runs on the active Dask client's workers, or in this process. {note}".strip()}
            for name, note in FUNCTIONS.items()
        },
    }
