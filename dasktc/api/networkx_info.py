"""Description of the backend, which NetworkX reads at its every import: nothing heavy may be imported here."""

from __future__ import annotations

from typing import Any

__all__ = ["get_info"]

PAIRS = "Graphs with loops are not supported. Without ebunch, pairs come in another order."
FUNCTIONS = {
    "adamic_adar_index": (3e-4, PAIRS),
    "all_triangles": (3e-6, "Triangles come in another order."),
    "average_clustering": (2e-5, "With weights or directions in this process."),
    "clustering": (2e-5, "With weights or directions in this process."),
    "core_number": (4e-6, "In this process; directed graphs are not supported."),
    "generalized_degree": (2e-5, ""),
    "jaccard_coefficient": (3e-4, PAIRS),
    "k_truss": (1e-5, "In this process."),
    "resource_allocation_index": (3e-4, PAIRS),
    "square_clustering": (7e-5, "In this process; directed graphs are not supported."),
    "transitivity": (2e-5, "Directed graphs are not supported."),
    "triadic_census": (2e-4, "In this process."),
    "triangles": (3e-6, "Of a multigraph, only all nodes at once."),
}
"""The functions of the backend: approximate seconds per edge in NetworkX, and a note.

Measured with preferential attachment, 10 edges a node, 10^4 to 10^5 edges, on one core.
"""


def get_info() -> dict[str, Any]:
    """Describe the backend, in the form of NetworkX's entry point `networkx.backend_info`."""
    return {
        "backend_name": "dasktc",
        "project": "dasktc",
        "package": "dasktc",
        "short_summary": "Exact triangle counting with Dask.",
        "functions": {
            name: {"additional_docs": f"Runs on the active Dask client's workers, or in this process. {note}".strip()}
            for name, (_, note) in FUNCTIONS.items()
        },
    }
