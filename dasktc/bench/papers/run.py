"""Runs the figures that are asked for, and writes plots, page and report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from dasktc.backends import get_backend, unusable
from dasktc.backends.out_of_memory import said_in_one_line
from dasktc.bench.papers import (
    fox,
    fox_rates,
    hindex,
    hindex_gpus,
    hindex_graphs,
    lstc,
    lstc_kernel,
    lstc_memory,
    tcstream,
    trust_balance,
    trust_chunks,
    trust_collisions,
    trust_degrees,
    trust_hash,
    trust_scaling,
)
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Figure, Study
from dasktc.bench.papers.graphs import SIZES, generated, real
from dasktc.bench.report import Report, Say, Section, check_folder, command, device, quiet, surroundings
from dasktc.errors import DasktcError, DeviceMemoryError, InputError

__all__ = ["FIGURES", "OUT", "run"]

OUT = "bench-papers"
"""Folder of the plots and the page where none is named."""
RUNS = 3
"""Times that a count is timed."""
SMALLER = "--quick measures smaller graphs"
"""What helps where a device has no room for a figure."""
NO_PLOTS = "matplotlib is not installed: text alone; pip install 'dasktc[bench]'"

FIGURES: dict[str, Study] = {
    "trust-fig3": Study(trust_hash.cached_levels, trust_hash.CACHED_LEVELS),
    "trust-fig4": Study(trust_hash.construction, trust_hash.CONSTRUCTION),
    "trust-fig5": Study(trust_degrees.within_rows, trust_degrees.WITHIN_ROWS),
    "trust-fig7": Study(trust_degrees.between_rows, trust_degrees.BETWEEN_ROWS),
    "trust-fig8": Study(trust_chunks.chunk_size, trust_chunks.CHUNK_SIZE),
    "trust-fig12": Study(trust_hash.ablation, trust_hash.ABLATION),
    "trust-fig13": Study(trust_degrees.orders, trust_degrees.ORDERS),
    "trust-fig14": Study(trust_balance.combinations, trust_balance.COMBINATIONS),
    "trust-fig15": Study(trust_scaling.scaling, trust_scaling.SCALING),
    "trust-table3": Study(trust_collisions.max_collision, trust_collisions.MAX_COLLISION),
    "trust-table6": Study(trust_balance.imbalance, trust_balance.IMBALANCE),
    "fox-fig3": Study(fox_rates.rates, fox_rates.RATES),
    "fox-fig4": Study(fox.log_tpi, fox.LOG_TPI),
    "fox-fig5": Study(fox.binning_overhead, fox.BINNING),
    "fox-table2": Study(fox_rates.times, fox_rates.TIMES),
    "fox-estimate": Study(fox.estimates, fox.ESTIMATES),
    "lstc-table3": Study(lstc.vertices_removed, lstc.VERTICES_REMOVED),
    "lstc-table4": Study(lstc.edges_removed, lstc.EDGES_REMOVED),
    "lstc-table6": Study(lstc.assignments, lstc.ASSIGNED),
    "lstc-fig7": Study(lstc.tile_width, lstc.TILE_WIDTH),
    "lstc-table5": Study(lstc_kernel.transformation, lstc_kernel.TRANSFORMATION),
    "lstc-table7": Study(lstc_memory.efficiency, lstc_memory.EFFICIENCY),
    "lstc-table8": Study(lstc.resident_blocks, lstc.OCCUPANCY),
    "lstc-table9": Study(lstc_kernel.systems, lstc_kernel.SYSTEMS),
    "lstc-table10": Study(lstc_kernel.large_systems, lstc_kernel.LARGE_SYSTEMS),
    "lstc-fig8": Study(lstc_kernel.gpus, lstc_kernel.GPUS),
    "lstc-fig9": Study(lstc_kernel.shared_memory, lstc_kernel.SHARED),
    "lstc-fig10": Study(lstc_memory.accesses, lstc_memory.ACCESSES),
    "hindex-fig2": Study(hindex_graphs.kinds_of_graphs, hindex_graphs.KINDS),
    "hindex-fig3": Study(hindex.shorter_or_longer, hindex.COLLISIONS),
    "hindex-fig4": Study(hindex_gpus.scales_well, hindex_gpus.SCALES_WELL),
    "hindex-fig5": Study(hindex_gpus.scales_badly, hindex_gpus.SCALES_BADLY),
    "hindex-table4": Study(hindex.graph500_rates, hindex.GRAPH500),
    "hindex-table5": Study(hindex.theory_rates, hindex.THEORY),
    "hindex-table6": Study(hindex_graphs.champions, hindex_graphs.CHAMPIONS),
    "hindex-gpus": Study(hindex_gpus.many_gpus, hindex_gpus.MANY_GPUS),
    "hindex-unsorted": Study(hindex_gpus.unsorted_rows, hindex_gpus.UNSORTED),
    "tcstream-overlap": Study(tcstream.overlap, tcstream.OVERLAP),
    "tcstream-table2": Study(tcstream.prepared, tcstream.PREPARED),
    "tcstream-table3": Study(tcstream.in_memory, tcstream.IN_MEMORY),
    "tcstream-fig5": Study(tcstream.trees, tcstream.TREES),
    "tcstream-fig6": Study(tcstream.threads, tcstream.THREADS),
    "tcstream-fig9": Study(tcstream.beyond_memory, tcstream.BEYOND),
}
"""The figures and tables by name; the part before the dash is the paper's, which stands for all of its own."""


def run(
    figures: Iterable[str] = (),
    backend: str = "auto",
    quick: bool = False,
    graphs: str | None = None,
    out: str | None = None,
    studies: Mapping[str, Study] = FIGURES,
    say: Say = quiet,
) -> Report:
    """Run the papers' figures again.

    Parameters
    ----------
    figures : iterable of str
        Names of `studies`, or a paper's; none: all.
    backend : {"auto", "cpu", "cuda"}
        `auto`: a GPU where there is a usable one.
    quick : bool
        Small graphs.
    graphs : str, optional
        Folder of soc-Slashdot0902.txt.gz, amazon0601-edges.csv.gz, twitter_combined-edges.csv.gz and
        cnr-2000.arcs.tsv.gz, of which those that are there take part; of a quick run only the first.
    out : str, optional
        Folder of the plots and the page; default: OUT.
    studies : mapping of str to Study
    say : callable (str), optional
        Told what is being measured.

    Returns
    -------
    Report
        Its sections are Figures, and at last what they agree in.

    Raises
    ------
    InputError
        A name or an option makes no sense, or there is no usable GPU for `cuda`.
    DasktcError
        The folder cannot be written.
    CountError
        Two ways to count disagree.

    Notes
    -----
    A figure for which the device has no room is skipped, and the last table says so with figures.
    """
    names = chosen(list(figures), studies)
    counting_backend = _backend(backend)
    folder = _folders(graphs, out)
    sizes = SIZES[counting_backend, quick]
    bench = Bench(counting_backend, [*generated(sizes), *real(graphs, quick)], sizes, quick, RUNS)
    options = {"quick": quick, "backend": None if backend == "auto" else backend, "graphs": graphs, "out": out}
    facts, line = surroundings(device=device(counting_backend)), command("papers", *figures, **options)
    results, skipped = [], []
    for name in names:
        say(name)
        try:
            results.append(_named(said_in_one_line(studies[name].examine)(bench), name, bench))
            say(results[-1])
        except DeviceMemoryError as error:
            bench.forget()
            skipped.append(f"{name}: skipped: {str(error).partition('; take less of it')[0]}; {SMALLER}")
            say(skipped[-1])
    facts["plots"] = _write(results, skipped, folder, line, facts) if find_spec("matplotlib") else NO_PLOTS
    return Report(line, facts, [*results, _directions(results, skipped)])


def chosen(figures: list[str], studies: Mapping[str, Study] = FIGURES) -> list[str]:
    """Resolve names to figures, each once, in their order.

    Raises
    ------
    InputError
        Nothing has that name.
    """
    papers = dict.fromkeys(name.split("-")[0] for name in studies)
    for name in figures:
        if name not in studies and name not in papers:
            raise InputError(
                f"figure {name!r} does not exist: choose of {', '.join(studies)}, or all of {', '.join(papers)}"
            )
    selection = set(figures) or set(papers)
    return [name for name in studies if name in selection or name.split("-")[0] in selection]


def _folders(graphs: str | None, out: str | None) -> Path:
    """Make the output folder, before anything is measured."""
    check_folder("graphs", graphs)
    folder = Path(out or OUT)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder} is a file: plots and page go into a folder; name another")
    if find_spec("matplotlib"):
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn a failure to write the folder into an error of one line."""
    try:
        yield
    except OSError as error:
        raise DasktcError(
            f"--out {folder} cannot be written ({error.strerror}): plots and page need a place; name another"
        ) from error


def _backend(name: str) -> str:
    if name != "auto":
        return get_backend(name).name
    return "cpu" if unusable("cuda") else "cuda"


def _named(figure: Figure, name: str, bench: Bench) -> Figure:
    figure.name = name
    figure.graphs = figure.graphs or list(dict.fromkeys(str(row[0]) for row in figure.rows)) or bench.names
    return figure


def _directions(figures: list[Figure], skipped: list[str]) -> Section:
    """Table of the papers' claims, and which agree."""
    columns = {"figure": "", "direction": "", "magnitude": "", "by proxy": "", "paper": ""}
    table = Section("What the papers say, and whether it goes that way here", columns)
    pairs = [(figure.name, verdict) for figure in figures for verdict in figure.verdicts]
    table.rows = [[name, *verdict.cells, verdict.paper] for name, verdict in pairs]
    verdicts = [verdict for _, verdict in pairs]
    table.notes = [
        _counted("direction", [verdict.direction for verdict in verdicts if not verdict.definition]),
        _counted("magnitude", [verdict.magnitude for verdict in verdicts if verdict.magnitude is not None]),
        f"{sum(verdict.definition for verdict in verdicts)} directions hold by definition",
        *skipped,
    ]
    return table


def _counted(kind: str, answers: list[bool | None]) -> str:
    yes, no, untold = (sum(answer is verdict for answer in answers) for verdict in (True, False, None))
    return f"{kind}: {yes} agree, {no} do not" + f", {untold} cannot be told here" * (untold > 0)


def _write(figures: list[Figure], skipped: list[str], folder: Path, line: str, facts: dict[str, str]) -> str:
    """Write the plots and the page, and return the page's path."""
    from dasktc.bench.papers.page import page
    from dasktc.bench.papers.plots import draw

    images = {figure.name: draw(figure, facts["device"], line) for figure in figures}
    directions = _directions(figures, skipped)
    path, text = folder / "papers.html", page(figures, images, {"command": line, **facts}, directions)
    with _writing(folder):
        for name, image in images.items():
            (folder / f"{name}.png").write_bytes(image)
        path.write_text(text, encoding="utf-8")
    return str(path)
