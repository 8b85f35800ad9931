"""Verdicts of `dasktc bench papers`: each accepts a table like the paper's, and rejects a doctored one.

The claims are those of `run.FIGURES`; a claim without a doctored table here fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dasktc.bench.papers import lstc, run
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Claim, Figure, Finding, Published, Study, Verdict
from dasktc.bench.papers.graphs import SIZES, Sizes
from dasktc.bench.papers.hindex import RATE
from tests.support.emulation import cuda as emulated_cuda
from tests.support.emulation.host import compiler

Columns = dict[str, list[Any]]


@dataclass
class Table:
    """A table that agrees with the paper, and changes of it that do not.

    Attributes
    ----------
    columns : dict
        Cells by column.
    direction, magnitude : dict
        For each claim, columns whose replacement turns the verdict's direction, or its magnitude, into a no.
    """

    columns: Columns
    direction: dict[str, Columns] = field(default_factory=dict)
    magnitude: dict[str, Columns] = field(default_factory=dict)

    def figure(self, doctored: Columns | None = None) -> Figure:
        columns = self.columns | (doctored or {})
        return Figure("", dict.fromkeys(columns, ""), [list(row) for row in zip(*columns.values(), strict=True)])


STAGES: Columns = {
    "graph": ["Kronecker", "RM"], "BS": [1.0, 1.0], "VH": [2.0, 2.0], "CO": [30.0, 2.0], "VC": [69.0, 1.98],
    "RO (IN)": [77.0, 2.2], "RO (OUT)": [81.0, 2.4],
}  # fmt: skip
LAYOUTS: Columns = {
    "graph": ["A", "B"], "WC": [1.0, 1.0], "SW (8)": [1.3, 1.6], "SW (16)": [1.5, 1.4], "PC": [0.5, 0.6],
    "VC": [1.5, 1.6],
}  # fmt: skip
PROXIES: Columns = {"graph": ["Kronecker", "Kronecker", "RA"], "part": ["0", "total", "total"]}
ASSIGNED: Columns = {
    "graph": ["A", "A", "A", "B", "B", "B"], "assign": ["contiguous", "metis", lstc.UNDIVIDED] * 2,
    "partition": [1.0, 20.0, 1.0, 1.0, 50.0, 1.0], "kernel": [1.0, 1.1, 1.5, 1.0, 1.0, 2.0],
}  # fmt: skip
WIDTHS: Columns = {"graph": ["A", "RA"], "rows above 128": [0.1, 0.0], "64": [1.2, 1.0], "128": [1.0, 1.0]}
WIDTHS |= {"256": [1.1, 1.1], "512": [1.5, 1.4], "1024": [2.0, 2.0]}
BOTH = ["A", "A", "B", "B"]
# fmt: off
TABLES: dict[tuple[str, str], Table] = {
    ("trust-fig4", "both"): Table(
        {"graph": BOTH, "design": ["edge-centric", "vertex-centric"] * 2, "construction": [0.5, 0.15, 0.3, 0.01],
         "intersection": [0.4, 0.8, 0.6, 0.9], "times as long": [20.0, 1.0, 100.0, 1.0]},
        direction={"vertex-centric share": {"construction": [0.5, 0.1, 0.3, 0.9]}},
        magnitude={"edge-centric share": {"construction": [0.3, 0.1, 0.37, 0.01]},
                   "vertex-centric share": {"construction": [0.5, 0.25, 0.3, 0.01]},
                   "ratio": {"times as long": [20.0, 1.0, 60.0, 1.0]}},
    ),
    ("trust-fig3", "cpu"): Table(
        {"graph": ["RA", "RM"], "1": [0.5, 0.6], "6": [0.999, 1.0], "8": [1.0, 1.0]},
        direction={"no more levels": {"6": [0.98, 1.0]}},
    ),
    ("trust-fig3", "cuda"): Table(
        {"graph": ["Kronecker", "RA", "RM"], "1": [1.0] * 3, "6": [1.0, 1.3, 1.2], "8": [0.9, 1.3, 1.2]},
        direction={"sparse graphs": {"6": [1.2, 1.3, 1.01]}, "no more levels": {"8": [1.06, 1.3, 1.2]}},
    ),
    ("trust-fig5", "both"): Table(
        {"graph": ["A", "B"], "median": [8.0, 20.0], "most": [2000.0, 3000.0]},
        direction={"median": {"median": [1.0, 1.5]}},
        magnitude={"median": {"median": [3.0, 4.0]}, "maximum": {"most": [100.0, 200.0]}},
    ),
    ("trust-fig7", "both"): Table(
        {"graph": ["Kronecker", "RA"], "least": [0, 0], "median": [3, 10], "most": [9000, 22]},
        direction={"apart": {"most": [90, 22]}},
        magnitude={"apart": {"most": [3000, 22]}},
    ),
    ("trust-fig13", "both"): Table(
        {"graph": ["A", "B"], "IN, % fewer": [5.0, 8.0], "OUT, % fewer": [6.0, 9.0], "IN, hits % more": [5.0, 6.0],
         "OUT, hits % more": [6.0, 7.0]},
        direction={"IN loads": {"IN, % fewer": [-9.0, 8.0]}, "OUT loads": {"OUT, % fewer": [-9.5, 9.0]},
                   "IN cache": {"IN, hits % more": [-3.0, 2.0]}, "OUT cache": {"OUT, hits % more": [-3.0, 2.0]}},
        magnitude={"IN loads": {"IN, % fewer": [30.0, 8.0]}, "OUT loads": {"OUT, % fewer": [1.0, 1.0]},
                   "IN cache": {"IN, hits % more": [0.1, 0.3]}, "OUT cache": {"OUT, hits % more": [0.1, 0.3]}},
    ),
    ("trust-fig8", "cpu"): Table(
        {"graph": ["Kronecker", "3D", "RA"], "edges a vertex": [16.0, 3.0, 8.0], "1": [1.0, 1.2, 1.1],
         "2": [1.1, 1.1, 1.2], "3": [1.2, 1.3, 1.3]},
        direction={"others": {"2": [0.9, 1.1, 1.2]}},
    ),
    ("trust-fig8", "cuda"): Table(
        {"graph": ["Kronecker", "3D", "RA"], "edges a vertex": [16.0, 3.0, 8.0], "1": [1.0, 1.0, 1.0],
         "2": [0.9, 1.1, 1.01], "3": [0.8, 1.2, 0.9]},
        direction={"sparsest": {"2": [0.9, 0.9, 1.0], "3": [0.8, 0.9, 0.9]}, "others": {"3": [0.8, 1.2, 1.5]}},
        magnitude={"sparsest": {"3": [0.8, 3.0, 0.9]}},
    ),
    ("trust-fig12", "both"): Table(
        STAGES,
        direction={"VH": {"VH": [0.9, 1.1]}, "RO (IN)": {"RO (IN)": [3.1, 3.1]}, "RO (OUT)": {"RO (OUT)": [3.1, 3.1]},
                   "better order": {"RO (OUT)": [81.0, 2.0]}},
        magnitude={"VH": {"VH": [1.45, 1.45]}, "RO (IN)": {"RO (IN)": [138.0, 4.0]},
                   "RO (OUT)": {"RO (OUT)": [138.0, 4.0]}},
    ),
    ("trust-fig12", "cuda"): Table(
        STAGES,
        direction={"CO": {"CO": [2.0, 9.0]}, "CO on even graphs": {"CO": [30.0, 2.2]}, "VC": {"VC": [20.0, 1.9]},
                   "VC on even graphs": {"VC": [69.0, 2.02]}},
        magnitude={"CO": {"CO": [4.0, 2.0]}, "CO on even graphs": {"CO": [30.0, 1.6]}, "VC": {"VC": [200.0, 20.0]}},
    ),
    ("trust-fig14", "both"): Table(
        LAYOUTS,
        direction={"subwarps": {"SW (8)": [1.0, 0.5]}, "best subwarp": {"SW (8)": [1.0, 1.0]}},
        magnitude={"subwarps": {"SW (8)": [3.0, 3.0]}},
    ),
    ("trust-fig14", "cuda"): Table(
        LAYOUTS,
        direction={"virtual": {"VC": [0.9, 1.0]}, "physical": {"PC": [1.1, 1.0]}},
        magnitude={"virtual": {"VC": [2.4, 2.5]}, "physical": {"PC": [0.2, 0.3]}},
    ),
    ("trust-fig14", "cpu"): Table(LAYOUTS, magnitude={"virtual": {"VC": [2.4, 2.5]}, "physical": {"PC": [0.7, 0.8]}} ),
    ("trust-table3", "both"): Table(
        {"graph": ["Kronecker", "RM", "RA"], "BS": [190, 5, 4], "CO": [10, 5, 4], "CO + RO (OUT)": [9, 6, 4]},
        direction={"CO leaves": {"CO": [10, 4, 4]}, "RO (OUT)": {"CO + RO (OUT)": [11, 6, 4]},
                   "at most 16": {"CO + RO (OUT)": [17, 5, 4]}},
        magnitude={"CO lowers": {"CO": [180, 5, 4]}},
    ),
    ("trust-table6", "both"): Table(
        {"graph": ["A", "A"], "n": [8, 8], "m": [1, 2], "slowest, ms": [1.9, 1.0], "time IR": [1.1, 1.2],
         "work IR": [1.1, 1.1], "space IR": [1.01, 1.05], "range work IR": [1.7, None], "range space IR": [1.5, 1.6]},
        direction={"space": {"range space IR": [1.5, 1.04]}, "time": {"range work IR": [1.05, 1.7]},
                   "doubled": {"slowest, ms": [1.0, 1.0]}},
        magnitude={"space": {"space IR": [1.01, 1.3]}, "time": {"time IR": [1.1, None]},
                   "doubled": {"slowest, ms": [1.5, 1.0]}},
    ),
    ("fox-fig4", "both"): Table(
        {"graph": ["A", "B", "C"], "over 1": [1.0, 5.0, 1.0], "over 32": [2.0, 1.1, 0.9],
         "over 256": [9.0, 22.0, 9.0]},
        direction={"as fast": {"over 1": [0.9, 5.0, 1.0]},
                   "up to": {"over 1": [1.0] * 3, "over 32": [1.0] * 3, "over 256": [1.9] * 3},
                   "best differs": {"over 32": [2.0, 6.0, 1.1]}},
        magnitude={"up to": {"over 256": [9.0, 41.6, 9.0]}},
    ),
    ("fox-fig5", "both"): Table(
        {"graph": ["3D", "Kronecker"], "entries an edge": [6.0, 112.0], "binning / search": [1.2, 0.06],
         "binning / merge": [2.0, 0.09]},
        direction={"low degree": {"binning / search": [0.05, 0.06]}, "high degree": {"binning / merge": [2.0, 0.2]}},
        magnitude={"low degree": {"binning / search": [0.37, 0.06]}, "high degree": {"binning / search": [1.2, 0.01]}},
    ),
    ("lstc-table3", "both"): Table(
        PROXIES | {"left": [0.1, 0.6, 0.65]},
        magnitude={"with hubs": {"left": [0.1, 0.3, 0.65]}, "without hubs": {"left": [0.1, 0.6, 0.989]}},
    ),
    ("lstc-table4", "both"): Table(
        PROXIES | {"left": [0.1, 0.85, 0.84]},
        magnitude={"with hubs": {"left": [0.1, 0.5, 0.84]}, "without hubs": {"left": [0.1, 0.85, 0.988]}},
    ),
    ("lstc-table6", "both"): Table(
        ASSIGNED,
        direction={"METIS partitions": {"partition": [10.0, 9.0, 1.0, 1.0, 20.0, 1.0]},
                   "METIS counts": {"kernel": [1.0, 1.4, 1.5, 1.0, 1.0, 2.0]}},
        magnitude={"METIS partitions": {"partition": [10.0, 47.0, 1.0, 1.0, 20.0, 1.0]},
                   "METIS counts": {"kernel": [1.0, 1.24, 1.5, 1.0, 1.0, 2.0]}},
    ),
    ("lstc-table6", "cuda"): Table(
        ASSIGNED,
        direction={"TriCore": {"kernel": [1.0, 1.0, 0.9, 1.0, 1.0, 2.0]}},
        magnitude={"TriCore": {"kernel": [1.0, 1.0, 9.0, 1.0, 1.0, 2.0]}},
    ),
    ("lstc-fig7", "cuda"): Table(
        WIDTHS,
        direction={"to 128": {"64": [1.0, 1.0]}, "beyond 128": {"1024": [2.0, 0.9]}},
    ),
    ("lstc-fig7", "cpu"): Table(WIDTHS),
    ("hindex-fig2", "both"): Table(
        {"graph": ["Kronecker 18", "RA", "3D"], "M edges / s": [75.0, 900.0, 2300.0]},
        direction={"even": {"M edges / s": [75.0, 70.0, 2300.0]}},
        magnitude={"even": {"M edges / s": [300.0, 900.0, 2300.0]}},
    ),
    ("hindex-table6", "both"): Table(
        {"graph": ["Kronecker", "soc-Slashdot0902"], "M edges / s": [75.0, 1200.0], "H-INDEX, V100": [None, 1087.0],
         "8 P100, 2018": [None, 793.0], "24 CPU cores, 2018": [None, 150.0]},
        direction={"champions": {"M edges / s": [75.0, 700.0]}},
        magnitude={"champions": {"M edges / s": [75.0, 3000.0]}},
    ),
    ("hindex-fig3", "both"): Table(
        {"graph": ["Kronecker", "Theory"], "shorter": [100, 200], "longer": [210, 420], "longer / shorter": [2.1, 2.1],
         "paper, shorter": [None, 200], "paper, longer": [None, 420]},
        direction={"fewer": {"longer": [90, 420]}, "published": {"longer": [210, 190]}},
        magnitude={"fewer": {"longer / shorter": [2.1, 9.0]}, "published": {"shorter": [100, 180]}},
    ),
    ("hindex-table4", "both"): Table(
        {"graph": ["10", "11", "12"], RATE: [2.0, 1.42, 1.0]},
        direction={"falls": {RATE: [2.0, 1.0, 2.0]}},
        magnitude={"falls": {RATE: [2.0, 1.9, 1.8]}},
    ),
    ("hindex-table5", "both"): Table(
        {"graph": ["Theory-4-B1k", "Theory-4-B2k", "Theory-9-B1k", "Theory-9-B2k"],
         "edges": [20_000, 20_000, 30_000, 30_000], RATE: [1.0, 1.1, 1.0, 4.0]},
        direction={"leaves": {RATE: [1.0, 0.9, 1.0, 4.0]}},
        magnitude={"leaves": {RATE: [1.0, 1.1, 1.0, 13.9]}},
    ),
    ("lstc-table5", "both"): Table(
        {"graph": ["A"] * 3, "parts": [4] * 3, "proxies": ["lstc", "tight", "none"], "max MB": [10.0, 9.0, 13.0],
         "kernel": [1.0, 1.0, 1.01]},
        direction={"kernel": {"kernel": [1.2, 1.0, 1.0]}},
        magnitude={"memory": {"max MB": [10.0, 9.0, 20.0]}, "kernel": {"kernel": [1.0, 1.0, 2.0]}},
    ),
    ("lstc-table9", "both"): Table(
        {"with reordering": [10.0, 14.0]},
        direction={"TRUST": {"with reordering": [0.5, 0.6]}},
        magnitude={"TRUST": {"with reordering": [100.0, 200.0]}},
    ),
    ("lstc-table9", "cuda"): Table(
        {"TriCore/LSTC": [3.0, 4.0], "TRUST/LSTC": [0.5, 0.6]},
        direction={"TriCore": {"TriCore/LSTC": [0.5, 0.9]}, "TRUST alone": {"TRUST/LSTC": [2.0, 2.0]}},
        magnitude={"TriCore": {"TriCore/LSTC": [10.0, 20.0]}, "TRUST alone": {"TRUST/LSTC": [0.1, 0.1]}},
    ),
    ("lstc-table10", "both"): Table(
        {"with reordering": [20.0, 24.0]},
        direction={"TRUST": {"with reordering": [0.5, 0.6]}},
        magnitude={"TRUST": {"with reordering": [2.0, 3.0]}},
    ),
    ("lstc-table10", "cuda"): Table(
        {"TriCore/LSTC": [1.8, 1.9], "TRUST/LSTC": [0.4, 0.45]},
        direction={"TriCore": {"TriCore/LSTC": [0.5, 0.9]}, "TRUST alone": {"TRUST/LSTC": [2.0, 2.0]}},
        magnitude={"TriCore": {"TriCore/LSTC": [10.0, 20.0]}, "TRUST alone": {"TRUST/LSTC": [0.1, 0.1]}},
    ),
    ("lstc-fig8", "both"): Table(
        {"graph": ["A"] * 3, "GPUs": [1, 2, 4], "speed-up": [1.0, 1.6, 2.3], "real speed-up": [1.0, 1.7, None]},
        direction={"speed-up": {"speed-up": [1.0, 1.6, 1.5]}, "real GPUs": {"real speed-up": [1.0, 0.9, None]}},
        magnitude={"speed-up": {"real speed-up": [1.0, 2.0, 4.0]}},
    ),
    ("lstc-fig9", "cuda"): Table(
        {"graph": ["A", "B"], "longest row": [100, 3], "times as long": [2.0, 0.9]},
        direction={"long rows": {"times as long": [1.01, 0.9]}, "short rows": {"times as long": [2.0, 1.03]}},
    ),
    ("lstc-fig10", "both"): Table(
        {"graph": ["Kronecker 1", "3D"], "fewer": [94.0, 10.0]},
        direction={"accesses left": {"fewer": [94.0, 95.0]}},
        magnitude={"accesses left": {"fewer": [89.0, 10.0]}},
    ),
    ("tcstream-overlap", "both"): Table(
        {"over the longest": [1.1, 1.2], "hidden": [0.9, 0.8]},
        direction={"overlap": {"hidden": [0.9, 0.4]}},
        magnitude={"overlap": {"over the longest": [1.1, 2.0]}},
    ),
    ("tcstream-table2", "both"): Table(
        {"graph": ["Kronecker 1"], "prepare/count": [0.3]},
        direction={"preparing": {"prepare/count": [1.2]}},
        magnitude={"preparing": {"prepare/count": [0.9]}},
    ),
    ("tcstream-table3", "both"): Table(
        {"graph": ["Kronecker 1"], "bitmaps/TC-Stream": [5.7], "merging/TC-Stream": [2.4]},
        direction={"bitmaps": {"bitmaps/TC-Stream": [0.5]}, "merging": {"merging/TC-Stream": [0.5]}},
        magnitude={"bitmaps": {"bitmaps/TC-Stream": [20.0]}, "merging": {"merging/TC-Stream": [10.0]}},
    ),
    ("tcstream-fig5", "cuda"): Table(
        {"graph": ["Kronecker 1"], "best over none": [0.8]},
        direction={"tree's top": {"best over none": [1.0]}},
    ),
    ("tcstream-fig5", "cpu"): Table({"graph": ["Kronecker 1"], "best over none": [0.8]}),
    ("tcstream-fig6", "both"): Table(
        {"threads": [1, 2], "speed-up": [1.0, 1.6], "of the threads": [1.0, 0.8]},
        direction={"multicore": {"speed-up": [1.0, 0.9]}},
        magnitude={"multicore": {"of the threads": [1.0, 0.4]}},
    ),
    ("tcstream-fig9", "cuda"): Table(
        {"host/TC-Stream": [2.5]},
        direction={"beyond memory": {"host/TC-Stream": [0.5]}},
        magnitude={"beyond memory": {"host/TC-Stream": [10.0]}},
    ),
}
# fmt: on
"""Tables by figure, with the claims that read them."""


RATES = {
    "graph": ["Theory-5-9", "Kronecker 20", "Kronecker 22"],
    "edges": [700, 15_000_000, 64_000_000],
    "Par-Search, M edges / s": [40.0, 900.0, 1500.0],
}
TIMES = {
    "graph": ["Theory-25-81-256-B1k", "Kronecker 21", "Kronecker 25"],
    "Intersect-Path, processing": [13.6, 162.1, 5775.0], "Intersect-Path, total": [18.9, 192.2, 6200.0],
    "Par-Search, processing": [7.2, 152.8, 7050.0], "Par-Search, total": [13.5, 172.6, 7382.0],
}  # fmt: skip
MANY = {
    "graph": ["Theory-3-4-5-B1k", "Kronecker 18", "Kronecker 19"], "edges": [346, 3_800_000, 7_700_000],
    "times with 16": [0.66, 12.8, 13.3], "times with 32": [0.47, 26.6, 26.8], "times with 64": [0.43, 43.2, 48.6],
}  # fmt: skip
# fmt: off
TABLES |= {
    ("trust-fig15", "both"): Table(
        {"graph": ["Kronecker", "RM", "RA"], "2": [1.9, 1.9, 2.0], "4": [3.5, 3.0, 3.9], "8": [6.0, 3.5, 6.8],
         "1024": [50.0, 649.0, 660.0], "2 real": [1.9, 1.8, 1.9], "4 real": [3.3, 3.2, 3.8], "8 real": [None] * 3},
        direction={"small": {"4": [1.9, 3.0, 3.9]}, "real GPUs": {"4 real": [3.3, 1.8, 3.8]},
                   "medium": {"1024": [50.0, 3.4, 660.0]}},
        magnitude={"small": {"8": [6.0, 3.5, 9.0]}, "medium": {"1024": [50.0, 649.0, 300.0]}},
    ),
    ("lstc-table8", "cuda"): Table(
        {"blocks": [25, 12, 6, 3, 1], "over that": [1.0] * 5},
        magnitude={"occupancy": {"over that": [1.28, 1.33, 1.33, 1.33, 2.0]}},
    ),
    ("fox-fig3", "cuda"): Table(
        RATES,
        direction={"fast": {"Par-Search, M edges / s": [40.0, 900.0, 990.0]},
                   "slow": {"Par-Search, M edges / s": [1600.0, 900.0, 1500.0]}},
    ),
    ("fox-table2", "both"): Table(
        TIMES,
        direction={"search": {"Intersect-Path, total": [13.4, 192.2, 6200.0]},
                   "path": {"Par-Search, processing": [7.2, 252.8, 7050.0]},
                   "binning": {"Par-Search, total": [13.5, 153.6, 7382.0]}},
        magnitude={"search": {"Intersect-Path, total": [12.0, 192.2, 6200.0]},
                   "path": {"Par-Search, processing": [7.2, 152.8, 17_050.0]},
                   "binning": {"Par-Search, total": [13.5, 372.6, 11_000.0]}},
    ),
    ("hindex-gpus", "both"): Table(
        MANY,
        direction={"large": {"times with 64": [0.43, 20.0, 48.6]}},
        magnitude={"large": {"times with 64": [0.43, 26.0, 48.6]}},
    ),
    ("hindex-gpus", "cuda"): Table(
        MANY,
        direction={"small": {"times with 64": [60.0, 43.2, 48.6]}},
        magnitude={"small": {"times with 64": [2.0, 43.2, 48.6]}},
    ),
    ("hindex-fig4", "both"): Table(
        {"graph": ["RM", "3D"], "times with 16": [8.0, 6.0], "times with 32": [10.0, 7.0],
         "times with 64": [11.4, 8.0]},
        direction={"well": {"times with 64": [11.4, 5.9]}},
        magnitude={"well": {"times with 64": [11.4, 40.0]}},
    ),
    ("hindex-fig5", "cuda"): Table(
        {"graph": ["Kronecker 12", "RA"], "times with 16": [2.0, 1.0], "times with 32": [2.1, 1.0],
         "times with 64": [3.2, 0.9]},
        direction={"badly": {"times with 64": [7.5, 0.9]}},
        magnitude={"badly": {"times with 64": [7.0, 0.9]}},
    ),
    ("fox-estimate", "both"): Table(
        {"graph": ["A", "B", "C"], "times as long": [1.1, 1.2, 0.9]},
        direction={"estimate": {"times as long": [1.1, 0.99, 0.9]}},
    ),
    ("lstc-table7", "cuda"): Table(
        {"graph": ["A", "A", "B", "B"], "shared memory": ["without", "with"] * 2, "cycles": [100.0, 10.0, 100.0, 50.0],
         "IPC": [0.2, 1.6, 1.0, 1.2], "stall cycles an instruction": [200.0, 20.0, 30.0, 20.0],
         "L1 hits, %": [66.0, 87.0, 48.0, 50.0], "occupancy, %": [61.0, 98.0, 93.0, 97.0]},
        direction={"cycles": {"cycles": [100.0, 110.0, 100.0, 50.0]}, "IPC": {"IPC": [0.2, 1.6, 1.0, 1.0]},
                   "stalls": {"stall cycles an instruction": [200.0, 20.0, 20.0, 20.0]},
                   "L1": {"L1 hits, %": [66.0, 60.0, 48.0, 50.0]},
                   "occupancy": {"occupancy, %": [61.0, 60.0, 93.0, 97.0]}},
        magnitude={"cycles": {"cycles": [100.0, 40.0, 100.0, 50.0]}, "IPC": {"IPC": [0.2, 0.4, 1.0, 1.2]},
                   "stalls": {"stall cycles an instruction": [200.0, 1.0, 30.0, 20.0]},
                   "L1": {"L1 hits, %": [20.0, 87.0, 48.0, 50.0]},
                   "occupancy": {"occupancy, %": [30.0, 98.0, 93.0, 97.0]}},
    ),
    ("hindex-unsorted", "both"): Table(
        {"graph": ["A", "B"], "prepare": [0.8, 0.9], "count, hindex": [1.0, 1.1], "count, trust": [1.0, 0.9]},
        direction={"saved": {"prepare": [1.3, 0.9]}},
    ),
}
# fmt: on


def claims() -> Iterator[Any]:
    for name, study in run.FIGURES.items():
        for claim in study.claims:
            yield pytest.param(name, claim, id=f"{name}-{claim.name}-{claim.on}")


@pytest.mark.parametrize(("name", "claim"), list(claims()))
def test_a_verdict_says_yes_of_the_papers_way_and_no_of_a_doctored_table(name: str, claim: Claim):
    assert (name, claim.on) in TABLES, "every claim needs a table as the paper has it, and doctored ones"
    table = TABLES[name, claim.on]
    found = claim.decide(table.figure())
    assert claim.definition or found.direction is True, found
    assert found.magnitude is (True if claim.published else None), found
    if not claim.definition:
        assert claim.no, "says what would make it a no"
        assert claim.decide(table.figure(table.direction[claim.name])).direction is False
    if claim.published:
        assert claim.decide(table.figure(table.magnitude[claim.name])).magnitude is False


def test_real_gpus_are_judged_where_they_are_and_simulated_ones_are_a_proxy_elsewhere():
    for name, column, cells in (
        ("trust-fig15", "8 real", [6.5, 6.6, 6.7]),
        ("lstc-fig8", "real speed-up", [1.0, 1.7, 2.4]),
    ):
        study, table = run.FIGURES[name], TABLES[name, "both"]
        simulated, real = (replace(table.figure(columns), proxy="parts in turn") for columns in ({}, {column: cells}))
        first, second, *_ = study.compare(simulated, "cuda")
        assert (first.proxy, second.proxy) == ("parts in turn", ""), "the second claim is of the real ones"
        first, *_ = study.compare(real, "cuda")
        assert (first.proxy, first.direction, first.magnitude) == ("", True, True)
        assert "real GPUs" in first.here
        slower = replace(table.figure({column: [0.9 for _ in cells]}), proxy="parts in turn")
        assert study.compare(slower, "cuda")[0].direction is False
    none: Columns = {f"{count} real": [None] * 3 for count in (2, 4, 8)}
    assert run.FIGURES["trust-fig15"].compare(TABLES["trust-fig15", "both"].figure(none), "cuda")[1].direction is None
    none = {"real speed-up": [None] * 3}
    assert run.FIGURES["lstc-fig8"].compare(TABLES["lstc-fig8", "both"].figure(none), "cuda")[1].direction is None


@pytest.mark.parametrize(
    ("name", "claim", "system"),
    [
        ("lstc-table6", "TriCore", "TriCore"),
        ("lstc-table9", "TriCore", "TriCore"),
        ("lstc-table9", "TRUST", "TRUST"),
        ("lstc-table10", "TriCore", "TriCore"),
        ("lstc-table10", "TRUST alone", "TRUST"),
        ("tcstream-fig9", "beyond memory", "Han et al."),
        ("trust-fig12", "VH", "H-INDEX"),
    ],
)
def test_another_systems_method_by_our_kernel_is_a_proxy(name: str, claim: str, system: str):
    table = TABLES.get((name, "cuda"), TABLES.get((name, "both")))
    assert table is not None
    study = Study(lambda bench: Figure("", {}), tuple(c for c in run.FIGURES[name].claims if c.name == claim))
    if claim in ("TRUST", "VH"):
        table = TABLES[name, "both"]
    (verdict,) = study.compare(table.figure(), "cuda")
    assert verdict.proxy.startswith(system)
    assert "by this program's kernel" in verdict.answer


def test_the_rate_of_another_scale_is_not_compared():
    study, table = run.FIGURES["hindex-fig2"], TABLES["hindex-fig2", "both"]
    (found,) = study.compare(table.figure({"graph": ["Kronecker 21", "RA", "3D"]}), "cuda")
    assert (found.direction, found.magnitude) == (True, None)


def test_hot_lines_of_a_cache_have_a_direction_alone():
    study = run.FIGURES["trust-fig13"]
    columns: Columns = {"graph": ["A", "B"], "IN, % fewer": [5.0, 8.0], "OUT, % fewer": [6.0, 9.0]}
    for least, way in ((1.0, True), (-5.0, False)):
        lines: Columns = {"IN, hot % fewer": [least, 2.0], "OUT, hot % fewer": [least, 2.0]}
        found = study.compare(Table(columns | lines).figure(), "cpu")[2:]
        assert [(of.direction, of.magnitude) for of in found] == [(way, None)] * 2


@pytest.mark.parametrize("name", run.FIGURES)
def test_claims_have_names_of_their_own(name: str):
    of = [(claim.name, backend) for claim in run.FIGURES[name].claims for backend in backends(claim)]
    assert len(of) == len(set(of))


def backends(claim: Claim) -> list[str]:
    return ["cpu", "cuda"] if claim.on == "both" else [claim.on]


def test_every_figure_stands_in_the_rooms_table():
    page = (Path(run.__file__).parent / "README.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert {row[0].strip("| `") for row in rows if row[0].startswith("| `")} == set(run.FIGURES)
    assert all(row[3].strip() or row[0].startswith(("| **", "| figure")) for row in rows), "ours, or why there is none"


# parts of a verdict


def test_a_band_ends_a_factor_beyond_the_published_range():
    band = Published(10, 40, 2, " %")
    assert band.holds([5, 80])
    assert not band.holds([5, 80.1])
    assert not band.holds([4.9])
    assert str(band) == "within 2 times of 10 to 40 %"
    assert str(Published(1.55, 1.55, 1.5)) == "within 1.5 times of 1.55"


@pytest.mark.parametrize(
    ("verdict", "agrees", "answer"),
    [
        (Verdict("p", "h", True, True), True, "direction yes, magnitude yes"),
        (Verdict("p", "h", True, False), False, "direction yes, magnitude no"),
        (Verdict("p", "h", False, True, proxy="steps"), False, "direction no, magnitude yes, by proxy (steps)"),
        (Verdict("p", "h", True), True, "yes"),
        (Verdict("p", "h", True, proxy="steps"), True, "yes, by proxy (steps)"),
        (Verdict("p", "h", None, proxy="steps"), None, "cannot be told here"),
        (Verdict("p", "h", True, definition=True), None, "by definition"),
        (Verdict("p", "h", True, False, definition=True), False, "direction by definition, magnitude no"),
    ],
)
def test_the_parts_of_a_verdict(verdict: Verdict, agrees: bool | None, answer: str):
    assert verdict.agrees is agrees
    assert verdict.answer == answer
    assert f"agrees: {answer}" in str(verdict)


def test_a_figure_agrees_if_all_that_it_claims_does():
    def agrees(*answers: bool | None) -> bool | None:
        return Figure("", {}, verdicts=[Verdict("p", "h", answer) for answer in answers]).agrees

    assert agrees(True, True) is True
    assert agrees(True, None) is None
    assert agrees(None, False) is False
    assert Figure("", {}, verdicts=[Verdict("p", "h", True, definition=True), Verdict("p", "h", True)]).agrees


def claim(name: str, on: Any, here: str) -> Claim:
    return Claim(name, "p", lambda figure: Finding(here, True, [1.0]), "the sky falls", Published(4, 4), on)


def test_a_claim_for_a_gpu_cannot_be_told_without():
    study = Study(lambda bench: Figure("", {}), (claim("a", "cuda", "timed"), claim("b", "cpu", "counted")))
    figure = Figure("", {}, why={"a": "because"})
    on_cpu, on_gpu = (study.compare(figure, backend) for backend in ("cpu", "cuda"))
    assert [v.here for v in on_cpu] == ["needs a GPU", "counted"]
    assert [v.direction for v in on_cpu] == [None, True]
    assert on_cpu[1].no == "the sky falls; magnitude: not within 2 times of 4"
    assert on_gpu[0].here == "timed; because"
    assert on_gpu[0].magnitude is False


def test_each_backend_has_its_claim_of_a_name():
    study = Study(lambda bench: Figure("", {}), (claim("a", "cuda", "timed"), claim("a", "cpu", "counted")))
    assert [v.here for v in study.compare(Figure("", {}), "cpu")] == ["counted"]
    assert [v.here for v in study.compare(Figure("", {}), "cuda")] == ["timed"]


def test_a_proxy_is_marked_in_the_table_the_page_and_the_plot():
    from dasktc.bench.papers.page import page
    from dasktc.bench.papers.plots import _caption

    figure = Figure("t", {"graph": ""}, [["A"]], name="x", proxy="a model of steps")
    figure.verdicts = [Verdict("p", "h", True, no="the sky falls", proxy=figure.proxy)]
    assert "\n  proxy: a model of steps\n" in str(figure)
    assert "by proxy: a model of steps\n" in _caption(figure, "d", "c")
    text = page([figure], {"x": b""}, {}, run._directions([figure], []))
    assert "By proxy: a model of steps." in text
    assert "A no if: the sky falls" in text
    assert figure.to_dict()["statements"][0]["counted"]


def test_an_exact_claim_is_by_no_proxy():
    of = (claim("time", "both", "timed"), replace(claim("counts", "both", "counted"), exact=True))
    found = Study(lambda bench: Figure("", {}), of).compare(Figure("", {}, proxy="steps"), "cpu")
    assert [verdict.proxy for verdict in found] == ["steps", ""]


def test_a_direction_by_definition_is_no_finding():
    by_definition = replace(claim("a", "both", "h"), find=lambda figure: Finding("h", None, [9.0]), definition=True)
    found = by_definition.decide(Figure("", {}))
    assert (found.direction, found.magnitude, found.answer) == (True, False, "direction by definition, magnitude no")


# a device without room


def test_a_figure_without_room_on_the_device_is_skipped_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    if compiler() is None:
        pytest.skip("no g++ on Linux, which runs the kernels on the host")

    def small(bench: Bench) -> Figure:
        return Figure("small", {"graph": ""}, [["A"]])

    def large(bench: Bench) -> Figure:
        bench.block(bench.cases[-1])
        raise MemoryError("std::bad_alloc: out_of_memory: CUDA error (failed to allocate 1234 bytes) at: pool.hpp:257")

    monkeypatch.setitem(SIZES, ("cuda", True), Sizes(5, 5, 50, 3, (4, 5), 1, (4, 5), (4, 5), ((2, 1),)))
    said: list[str] = []
    with emulated_cuda.backend():
        studies = {"a-large": Study(large, ()), "a-small": Study(small, ())}
        report = run.run(backend="cuda", quick=True, out=str(tmp_path), studies=studies, say=said.append)
    assert [section.title for section in report.sections[:-1]] == ["small"]
    name, line, other, *tables = said
    assert (name, other, len(tables)) == ("a-large", "a-small", 1)
    assert report.sections[-1].notes[-1] == line
    assert line.startswith("a-large: skipped: the GPU of ")
    assert "has no room for 1234 bytes, " in line
    assert " are free " in line
    assert line.endswith(f"for what others leave; {run.SMALLER}".replace("for ", ""))
    assert "\n" not in line
