"""Asks everything from eight threads of this fresh process at the same time: `python -m tests.support.first_calls`.

Every process has one moment at which all is new: libraries are imported, kernels loaded, registries filled. Questions
start together, so that as many as possible meet in it. Prints what went wrong, and nothing else.
"""

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dasktc
from tests.support.keywords import keywords

THREADS = 8
EDGES = [(u, v) for u in range(5) for v in range(u)] + [(4, 5)]
"""The complete graph of five vertices, and an edge to a sixth."""
TEXT = "".join(f"v{u} v{v}\n" for u, v in EDGES)


def array():
    import numpy as np

    return np.array(EDGES)


def graph(**options):

    return dasktc.prepare(array(), **keywords(**options))


def of_networkx(name, *arguments):
    import networkx as nx

    return getattr(nx, name)(nx.Graph(EDGES), *arguments, backend="dasktc")


def count(source=None, **options):

    return int(dasktc.triangle_count(array() if source is None else source, **keywords(**options)))


def counted_file(name):
    path = Path(sys.argv[2], f"{threading.get_ident()}-{name}")
    if path.suffix == ".parquet":
        import pandas as pd

        pd.DataFrame(EDGES, columns=["source", "target"]).to_parquet(path)
    else:
        path.write_text(TEXT)
    return count(path)


def saved():

    path = Path(sys.argv[2], f"{threading.get_ident()}-saved")
    with graph() as prepared:
        prepared.save(path, force=True)
    with dasktc.open_graph(path) as opened:
        return int(opened.triangle_count())


def estimate():

    return dasktc.estimate(array()).value


def generated():

    return count(dasktc.generate.kronecker(6, seed=1))


def refused():
    try:
        return count(kernel="no such kernel")
    except Exception as error:
        return type(error).__name__


QUESTIONS = {
    "count": (count, 10),
    "count on the CPU": (lambda: count(backend="cpu"), 10),
    "hash2d": (lambda: count(partition="hash2d", parts=2), 10),
    "merge": (lambda: count(kernel="merge"), 10),
    "text": (lambda: counted_file("a.txt"), 10),
    "Parquet": (lambda: counted_file("a.parquet"), 10),
    "generated": (generated, None),
    "saved": (saved, 10),
    "estimate": (estimate, 10),
    "prepare": (lambda: int(graph().triangle_count()), 10),
    "triangles": (lambda: graph().triangles().tolist(), [6, 6, 6, 6, 6, 0]),
    "supports": (lambda: sorted(graph().edge_support(frame="pandas").iloc[:, -1].tolist()), [0, *[3] * 10]),
    "clustering": (lambda: [round(c, 6) for c in graph().clustering()], [1, 1, 1, 1, 0.6, 0]),
    "average": (lambda: round(graph().average_clustering(), 6), 0.766667),
    "squares": (lambda: [round(c, 6) for c in graph(threads=1).square_clustering()], None),
    "cores": (lambda: graph().core_number().tolist(), [4, 4, 4, 4, 4, 1]),
    "similarity": (lambda: sorted(graph().similarity(frame="pandas").iloc[:, -1].round(6).tolist()), None),
    "weighted similarity": (lambda: len(graph().similarity(measure="adamic_adar", frame="pandas")), 11),
    "most similar": (lambda: len(graph(threads=1).similarity(top=1)), 6),
    "trusses": (lambda: sorted(graph().truss(frame="pandas").iloc[:, -1].tolist()), [2, *[5] * 10]),
    "k-truss": (lambda: len(graph().truss(4)), 10),
    "list": (lambda: len(graph().triangle_list()), 10),
    "cliques": (lambda: graph().cliques(4), 5),
    "update": (lambda: int(graph().update(remove=array()[:1]).graph.triangle_count()), 7),
    "frame": (lambda: len(graph(threads=1).oriented_edges().compute(scheduler="sync")), 11),
    "networkx triangles": (lambda: of_networkx("triangles"), {0: 6, 1: 6, 2: 6, 3: 6, 4: 6, 5: 0}),
    "networkx clustering": (lambda: round(of_networkx("average_clustering"), 6), 0.766667),
    "refusal": (refused, "InputError"),
}


def asked(name, together=None):
    """The answer to a question, or the error."""
    if together is not None:
        together.wait()
    try:
        return name, QUESTIONS[name][0]()
    except BaseException as error:
        return name, f"{type(error).__name__}: {error}"[:300]


def in_threads(names):
    """In a pool of threads, the first of which begin at the same moment."""
    together = threading.Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(asked, names, [together] * THREADS + [None] * (len(names) - THREADS)))


def in_asyncio(names):
    async def ask():
        return await asyncio.gather(*(asyncio.to_thread(asked, name) for name in names))

    return asyncio.run(ask())


def in_dask(names):
    """Under Dask's threaded scheduler."""
    import dask

    return dask.compute(*(dask.delayed(asked, pure=False)(name) for name in names), num_workers=THREADS)


def on_a_worker(names):
    """In tasks of one worker with eight threads, in a process of its own or, as here, in this one."""
    import dask
    from distributed import Client

    # Dask's profiler walks frames of running threads, which in CPython 3.11 may end the process at this switch interval
    dask.config.set({"distributed.worker.profile.enabled": False})
    with Client(processes=False, n_workers=1, threads_per_worker=THREADS, dashboard_address=None) as client:
        return client.gather([client.submit(asked, name, pure=False) for name in names])


WAYS = {"threads": in_threads, "asyncio": in_asyncio, "dask": in_dask, "worker": on_a_worker}

if __name__ == "__main__":
    sys.setswitchinterval(1e-5)
    names = [*QUESTIONS]
    shift = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    names = names[shift:] + names[:shift]
    answers = WAYS[sys.argv[1]](names)
    alone = {name: asked(name)[1] for name, (_, right) in QUESTIONS.items() if right is None}
    wrong = {(name, str(answer)) for name, answer in answers if answer != alone.get(name, QUESTIONS[name][1])}
    assert len(answers) == len(names)
    for name, answer in sorted(wrong):
        print(f"{name}: {answer}")
