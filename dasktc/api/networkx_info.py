"""What NetworkX asks of a backend each time that it is imported: nothing heavy may be imported here."""

from __future__ import annotations

from typing import Any

__all__ = ["get_info"]

FUNCTIONS = {
    "average_clustering": "`weight` is not supported, nor are directed graphs.",
    "clustering": "`weight` is not supported, nor are directed graphs.",
    "generalized_degree": "",
    "transitivity": "Directed graphs are not supported.",
    "triangles": "Of a multigraph, only all nodes at once.",
}
"""Notes on the functions that the backend has."""


def get_info() -> dict[str, Any]:
    """Describe the backend.

    Returns
    -------
    dict
        As NetworkX's entry point `networkx.backend_info` has it.
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
