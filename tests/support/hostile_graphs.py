"""Changes arrays of saved graphs, makes their checksums right again, and asks the graph everything.

`python -m tests.support.hostile_graphs FOLDER SEED CASES SECONDS` draws so many cases, or for so many seconds, in a
process of its own, because a kernel that follows a wrong number may end it. A graph is refused as damaged by an error
that names a file of its folder, or it answers every question. Prints each failure and, at the end, a line of JSON.
"""

import hashlib
import json
import shutil
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

import dasktc
from dasktc.errors import InputError
from dasktc.saved import arrays as array_files
from dasktc.saved import folder as saved_folder
from dasktc.saved.folder import MANIFEST
from tests.support.keywords import keywords


def graphs(folder):
    """Saved graphs of every scheme and order, with text ids, attributes, and after an update; and by shards."""
    rng = np.random.default_rng(4)
    edges = np.concatenate([rng.integers(0, 40, (150, 2)), rng.integers(0, 12, (60, 2))])
    plans = {
        "whole": {"partition": "whole"},
        "none": {"partition": "whole", "reorder": "none"},
        "hash2d": {"partition": "hash2d", "parts": 2},
        "hash2d-none": {"partition": "hash2d", "parts": 2, "reorder": "none"},
        "vertical": {"partition": "vertical", "parts": 2, "column_parts": 3},
        "proxy": {"partition": "proxy", "parts": 2},
    }
    for name, plan in plans.items():
        dasktc.prepare(edges, backend="cpu", threads=1, **keywords(**plan)).save(folder / name)
        yield folder / name
    dasktc.prepare(edges + 10**6, backend="cpu", threads=1).update(add=([2 * 10**6], [10**6])).graph.save(
        folder / "updated"
    )
    yield folder / "updated"
    names = pd.DataFrame({"a": [f"é{u}" for u in edges[:, 0]], "b": [f"é{v}" for v in edges[:, 1]]})
    dasktc.prepare(names, backend="cpu", threads=1).save(folder / "text")
    yield folder / "text"
    weighted = pd.DataFrame({"a": edges[:, 0], "b": edges[:, 1], "w": rng.random(len(edges))})
    given = {"weight": "w", "directed": True, "duplicates": "last", "partition": "hash2d", "parts": 2}
    dasktc.prepare(weighted, threads=1, **keywords(**given)).save(folder / "attributed")
    yield folder / "attributed"


def arrays_of(content):
    """The descriptions of all arrays in a manifest."""
    if isinstance(content, dict):
        if isinstance(content.get("file"), str):
            yield content
            return
        content = content.values()
    for inner in content if not isinstance(content, str | int | float | bool | None) else ():
        yield from arrays_of(inner)


def content_of(folder):
    """What the manifest of a saved graph says of it."""
    return json.loads((folder / MANIFEST).read_text())["graph"]


def checksummed(folder, content, **head):
    """Write a manifest with its checksum."""
    graph = json.dumps(content)
    checksum = hashlib.blake2b(graph.encode(), digest_size=16).hexdigest()
    head = {"format": saved_folder.FORMAT, "version": "9.9", "checksum": checksum} | head
    (folder / MANIFEST).write_text(f'{json.dumps(head)[:-1]}, "graph": {graph}}}')


def changed(folder, content, array, change):
    """Change an array of a saved graph in place by a function; its checksums are then right again."""
    path = folder / array["file"]
    held = bytearray(path.read_bytes())
    values = np.frombuffer(held, array["dtype"], array["length"], array["start"]).copy()
    change(values)
    data = values.tobytes()
    held[array["start"] : array["start"] + len(data)] = data
    path.write_bytes(held)
    chunks = range(0, len(data), array_files.CHUNK)
    array["crc32"] = "".join(f"{zlib.crc32(data[first : first + array_files.CHUNK]):08x}" for first in chunks)
    checksummed(folder, content)


def changes(rng, values):
    """Change some entries of an array, in one of the ways in which files go wrong or are made wrong."""
    size = len(values)
    if not size:
        return
    i, j = rng.integers(0, size, 2)
    first, end = sorted((i, j + 1)) if i <= j else (j, i + 1)
    top = 1 if values.dtype.kind == "f" else np.iinfo(values.dtype).max
    match rng.integers(0, 11):
        case 0:
            values[first:end] = values[first:end][::-1].copy()
        case 1:
            values[[i, j]] = values[[j, i]]
        case 2:
            values[i] = values[j]
        case 3:
            values[first:end] += 1
        case 4:
            values[first:end] -= 1
        case 5:
            values[i] = rng.integers(-2, 300) % (top + 1) if values.dtype.kind == "u" else rng.integers(-2, 300)
        case 6:
            values[first:end] = values[i]
        case 7:
            values[i] = top
        case 8:
            values[:] = np.roll(values, int(rng.integers(1, size + 1)))
        case 9:
            values.sort()
        case 10:
            values[[i, j]] += np.array([1, -1]).astype(values.dtype)  # the sum stays


def is_refusal(error, folder):
    text = str(error)
    return " is damaged" in text and str(folder) in text and "report" not in text and len(text) <= 500


def asked(folder):
    """Open a graph and ask it everything; return what happened."""
    try:
        graph = dasktc.open_graph(folder, threads=2, backend="cpu")
    except InputError as error:
        if not is_refusal(error, folder):
            raise
        return "refused"
    weighted = graph._context.prepared.attributes is not None
    try:
        result = graph.triangle_count(verify=1)
        assert int(graph.triangle_count(kernel="search")) == int(result)
        graph.edge_support(frame="pandas")
        assert int(graph.triangles(frame="pandas").sum()) == 3 * int(result)
        graph.triangle_list(limit=10**5, frame="pandas")
        graph.clustering(frame="pandas")
        graph.truss(frame="pandas")
        graph.core_number(frame="pandas")
        graph.square_clustering(frame="pandas")
        if weighted:
            graph.clustering(weight="w", frame="pandas")
            graph.triad_census()
    except InputError as error:
        if not (is_refusal(error, folder) and folder.name == "proxy"):  # whose copies of edges are not compared before
            raise
        return "refused later"
    finally:
        graph.close()
    return "answered"


def main(place, seed, cases, seconds):
    """Draw cases, and print how they ended; return whether all ended well."""
    place.mkdir()
    outcomes, failures, ends = {}, 0, time.monotonic() + seconds
    originals = [(folder, (folder / MANIFEST).read_text()) for folder in graphs(place)]
    whole = {folder: {path.name: path.read_bytes() for path in folder.iterdir()} for folder, _ in originals}
    for number in range(seed, seed + cases):
        if time.monotonic() > ends:
            break
        rng = np.random.default_rng(number)
        folder, manifest = originals[number % len(originals)]
        content = json.loads(manifest)["graph"]
        described = list(arrays_of(content))
        for array in (described[at] for at in rng.integers(0, len(described), rng.integers(1, 3))):
            changed(folder, content, array, lambda values: changes(rng, values))  # noqa: B023
        print(f"case {number}", file=sys.stderr, flush=True)  # the last one before a crash
        try:
            outcome = asked(folder)
        except Exception as error:
            outcome, failures = "failed", failures + 1
            print(f"case {number}, {folder.name}: {type(error).__name__}: {error}", flush=True)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        for name, data in whole[folder].items():
            (folder / name).write_bytes(data)
    shutil.rmtree(place)
    print(json.dumps(outcomes))
    return not failures


if __name__ == "__main__":
    folder, seed, cases, seconds = sys.argv[1:]
    sys.exit(not main(Path(folder), int(seed), int(cases), float(seconds)))
