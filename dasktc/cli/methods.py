"""`dasktc info --methods`: named methods, kernels, partitions, orders, assignments, explained by the registries."""

from __future__ import annotations

from typing import Any

import click

from dasktc.registry import ASSIGNMENTS, METHODS, ORDERS, SCHEMES, kernel_lines

__all__ = ["collect", "describe"]

TITLES = {
    "methods": "Published systems, as one name (--method); auto: the kernel, partition and order chosen below",
    "kernels": "Kernels: how a block triple is counted (--kernel); auto: chosen from the row lengths",
    "partitions": "Partitions: how the graph is cut into block triples (--partition); auto: chosen from the memory",
    "orders": "Orders of the vertices (--reorder); auto: that of the kernel",
    "assignments": "Assignments of vertices to the parts of proxy (--assign)",
}
"""What each registry is about, in the order of display."""


def collect() -> dict[str, Any]:
    """Names and lines of every registry, plug-ins included, and the partitions with --parts, ready for JSON."""
    lines = {
        "methods": [(name, f"{method.help}. {method.paper}") for name, method in METHODS.items()],
        "kernels": kernel_lines(),
        "partitions": SCHEMES.lines(),
        "orders": ORDERS.lines(),
        "assignments": ASSIGNMENTS.lines(),
    }
    parted = [name for name, scheme in SCHEMES.items() if not scheme.replicated]
    return {name: dict(rows) for name, rows in lines.items()} | {"partitions_with_parts": parted}


def describe(facts: dict[str, Any]) -> str:
    """Format the dict of `collect` as text of 80 columns."""
    formatter = click.HelpFormatter(width=80)
    for name, title in TITLES.items():
        formatter.write_text(f"{title}:")
        with formatter.indentation():
            formatter.write_dl([(key, f"{line}.") for key, line in facts[name].items()])
        if name == "partitions":
            formatter.write_text(f"n is --parts, of {', '.join(facts['partitions_with_parts'])}; m is --splits.")
        formatter.write_paragraph()
    return formatter.getvalue().rstrip("\n")
