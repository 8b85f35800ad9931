"""Runs the figures that are asked for, and writes plots, page and report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from dasktc.backends import get_backend, unusable
from dasktc.bench.papers import fox, hindex, lstc, tcstream, trust_balance, trust_chunks, trust_collisions, trust_hash
from dasktc.bench.papers.bench import Bench
from dasktc.bench.papers.figure import Figure
from dasktc.bench.papers.graphs import SIZES, generated, real
from dasktc.bench.report import Report, Section, load, machine, versions
from dasktc.errors import DasktcError, InputError

__all__ = ["FIGURES", "OUT", "run"]

OUT = "bench-papers"
"""Folder of the plots and the page where none is named."""
RUNS = 3
"""Times that a count is timed."""
NO_PLOTS = "matplotlib is not installed: text alone; pip install 'dasktc[bench]'"

FIGURES: dict[str, Callable[[Bench], Figure]] = {
    "trust-fig3": trust_hash.cached_levels,
    "trust-fig4": trust_hash.construction,
    "trust-fig8": trust_chunks.chunk_size,
    "trust-fig12": trust_hash.ablation,
    "trust-fig14": trust_balance.combinations,
    "trust-table3": trust_collisions.max_collision,
    "trust-table6": trust_balance.imbalance,
    "fox-fig4": fox.log_tpi,
    "fox-fig5": fox.binning_overhead,
    "lstc-table3": lstc.vertices_removed,
    "lstc-table4": lstc.edges_removed,
    "lstc-table6": lstc.assignments,
    "lstc-fig7": lstc.tile_width,
    "hindex-fig3": hindex.shorter_or_longer,
    "hindex-table4": hindex.graph500_rates,
    "hindex-table5": hindex.theory_rates,
    "tcstream-overlap": tcstream.overlap,
}
"""The figures and tables by name; the part before the dash is the paper's, which stands for all of its own."""

Say = Callable[[str], None]


def run(
    figures: Iterable[str] = (),
    backend: str = "auto",
    quick: bool = False,
    graphs: str | None = None,
    out: str | None = None,
    say: Say | None = None,
) -> Report:
    """Run the papers' figures again.

    Parameters
    ----------
    figures : iterable of str
        Names of FIGURES, or a paper's; none: all.
    backend : {"auto", "cpu", "cuda"}
        `auto`: a GPU where there is a usable one.
    quick : bool
        Small graphs.
    graphs : str, optional
        Folder of soc-Slashdot0902.txt.gz, amazon0601-edges.csv.gz, twitter_combined-edges.csv.gz and
        cnr-2000.arcs.tsv.gz, of which those that are there take part; of a quick run only the first.
    out : str, optional
        Folder of the plots and the page; default: OUT.
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
    """
    names = chosen(list(figures))
    folder = _folders(graphs, out)
    used = _backend(backend)
    sizes = SIZES[used, quick]
    bench = Bench(used, [*generated(sizes), *real(graphs, quick)], sizes, quick, RUNS)
    command, device = _command(figures, backend, quick, graphs, out), _device(used)
    drawn = []
    for name in names:
        (say or _quiet)(name)
        drawn.append(_named(FIGURES[name](bench), name, bench))
    facts = {"machine": machine(), "device": device, "load": load(), "versions": versions()}
    facts["plots"] = _write(drawn, folder, device, command, facts) if find_spec("matplotlib") else NO_PLOTS
    return Report(command, facts, [*drawn, _directions(drawn)])


def _quiet(text: str) -> None:
    """Say nothing."""


def chosen(figures: list[str]) -> list[str]:
    """Resolve names to figures, each once, in their order.

    Raises
    ------
    InputError
        Nothing has that name.
    """
    papers = dict.fromkeys(name.split("-")[0] for name in FIGURES)
    for name in figures:
        if name not in FIGURES and name not in papers:
            raise InputError(
                f"figure {name!r} does not exist: choose of {', '.join(FIGURES)}, or all of {', '.join(papers)}"
            )
    wanted = set(figures) or set(papers)
    return [name for name in FIGURES if name in wanted or name.split("-")[0] in wanted]


def _folders(graphs: str | None, out: str | None) -> Path:
    """Make the output folder, before anything is measured."""
    if graphs is not None and not Path(graphs).is_dir():
        raise InputError(f"--graphs {graphs} is no folder: no file can be found there; give one, or leave it out")
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


def _device(backend: str) -> str:
    """Describe the device that counts."""
    if backend == "cpu":
        return machine().split(", ")[0] + ", one thread"
    xp = get_backend(backend).array
    return str(xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)["name"].decode())


def _command(figures: Iterable[str], backend: str, quick: bool, graphs: str | None, out: str | None) -> str:
    options = ["--quick"] * quick + [f"--backend {backend}"] * (backend != "auto")
    options += [f"{option} {value}" for option, value in (("--graphs", graphs), ("--out", out)) if value]
    return " ".join(["dasktc bench papers", *options, *figures])


def _named(figure: Figure, name: str, bench: Bench) -> Figure:
    figure.name = name
    figure.graphs = figure.graphs or list(dict.fromkeys(str(row[0]) for row in figure.rows)) or bench.names
    return figure


def _directions(figures: list[Figure]) -> Section:
    """Table of the papers' statements, and which agree."""
    table = Section("What the papers say, and whether it goes that way here", {"figure": "", "agrees": "", "paper": ""})
    said = [(figure.name, statement) for figure in figures for statement in figure.statements]
    table.rows = [[name, statement.answer, statement.paper] for name, statement in said]
    count = partial(_count, [statement.agrees for _, statement in said])
    table.notes = [f"{count(True)} agree, {count(False)} do not, {count(None)} cannot be told here"]
    return table


def _count(answers: list[bool | None], answer: bool | None) -> int:
    return sum(given is answer for given in answers)


def _write(figures: list[Figure], folder: Path, device: str, command: str, facts: dict[str, str]) -> str:
    """Write the plots and the page, and return the page's path."""
    from dasktc.bench.papers.page import page
    from dasktc.bench.papers.plots import draw

    images = {figure.name: draw(figure, device, command) for figure in figures}
    path, text = folder / "papers.html", page(figures, images, {"command": command, **facts}, _directions(figures))
    with _writing(folder):
        for name, image in images.items():
            (folder / f"{name}.png").write_bytes(image)
        path.write_text(text, encoding="utf-8")
    return str(path)
