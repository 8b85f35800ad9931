"""Run notebooks and keep their outputs, without what tells of the machine: `python -m tests.support.notebook_outputs`.

The notebooks of `WITH_OUTPUTS` are committed with outputs, for readers who run nothing; `system/test_notebooks.py`
checks them, and that they were run after their code last changed. A kernel here names every host "host", in tables and
plots too; addresses, ports, paths and widgets are taken out of the outputs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "notebooks"
WITH_OUTPUTS = ("first_count", "questions", "meaning")
SITE = 'import platform, socket\nplatform.node = socket.gethostname = lambda: "host"\n'
"""What every process of a kernel runs at its start."""
WIDGETS = "application/vnd.jupyter.widget-view+json"
REPLACED = (
    (r"\b(https?|tcp|tls|ucx|inproc)://(?!HOST)[^\s/'\"<>(),]+", r"\1://HOST:PORT"),
    (r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?", "HOST"),
    (rf"{re.escape(str(FOLDER.parent))}|{re.escape(str(Path.home()))}(?=/)|/tmp/[\w./-]+", "..."),
)
"""Patterns of addresses and paths in texts of outputs, and what stands in their place."""
TELLING = r"\b(?:https?|tcp|tls|ucx|inproc)://(?!HOST:PORT)|\b(?:\d{1,3}\.){3}\d{1,3}\b|(?<![\w.])/(?:home|root|tmp|work|Users)/"
"""What no text of an output contains."""


def code_cells(notebook: Any) -> list[Any]:
    """The cells with code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def digest(notebook: Any) -> str:
    """Identify the code of a notebook."""
    return hashlib.sha256("\0".join("".join(cell["source"]) for cell in code_cells(notebook)).encode()).hexdigest()[:16]


def texts(output: Any) -> list[str]:
    """The texts of an output, with those of its other forms; pictures are left out."""
    forms = [value for form, value in output.get("data", {}).items() if form.startswith("text/")]
    return ["".join(text) for text in (*forms, *([output["text"]] if "text" in output else []))]


def without_machine(text: str) -> str:
    """Replace addresses and paths."""
    for pattern, instead in REPLACED:
        text = re.sub(pattern, instead, text)
    return text


def cleaned(notebook: Any) -> Any:
    """Take out of a notebook what tells of the machine, what depends on a running kernel, and times of execution."""
    for cell in notebook["cells"]:
        cell["metadata"] = {name: value for name, value in cell["metadata"].items() if name != "execution"}
    for cell in code_cells(notebook):
        cell["outputs"] = [output for output in cell["outputs"] if WIDGETS not in output.get("data", {})]
        for output in cell["outputs"]:
            if "text" in output:
                output["text"] = without_machine("".join(output["text"]))
            for form, value in output.get("data", {}).items():
                if form.startswith("text/"):
                    output["data"][form] = without_machine("".join(value))
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "dasktc": {"code": digest(notebook)},
    }
    return notebook


def run(path: Path) -> None:
    """Run a notebook and write it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(SITE)
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, str(FOLDER.parent), before]))
        try:
            NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
        finally:
            os.environ["PYTHONPATH"] = before
    nbformat.write(cleaned(notebook), path)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=WITH_OUTPUTS, help=f"default: {' '.join(WITH_OUTPUTS)}")
    for name in parser.parse_args().names:
        run(FOLDER / f"{name}.ipynb")
