"""The promises of .github/SECURITY.md; TLS has its own tests (system/test_tls.py)."""

from __future__ import annotations

import os
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import dasktc
from dasktc.cli.main import main
from dasktc.errors import DasktcError, InputError, without_secrets
from dasktc.reports.html_report import page

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"


class Trap:
    """An object that makes a folder if it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def pickled(trap, kind, folder):
    """A file that contains the pickled trap, which reading must not unpickle."""
    array = np.empty(1, object)
    array[0] = trap
    bare = pickle.dumps(trap)
    path = folder / f"edges.{kind.split()[-1]}"
    if kind == "objects npy":
        np.save(path, array, allow_pickle=True)
    elif kind == "objects npz":
        np.savez(path, src=array, dst=array)
    elif kind == "bare npz":
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("row.npy", "col.npy", "data.npy", "shape.npy", "format.npy"):
                archive.writestr(name, bare)
    else:
        path.write_bytes(bare)
    return path


@pytest.mark.parametrize(
    "kind", ["objects npy", "objects npz", "bare npz", "bare npy", "bare pkl", "bare parquet", "bare txt"]
)
def test_no_file_is_unpickled(kind, tmp_path):
    path = pickled(Trap(tmp_path / "sprung"), kind, tmp_path)
    with pytest.raises(InputError):
        dasktc.triangle_count(path, backend="cpu")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("text", ["__import__('os').mkdir('sprung')", "{x.__class__}", "f%(x)s", "0 1); import os #"])
def test_no_text_is_evaluated(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text(f"src,dst\n{text},1\n")
    result = dasktc.triangle_count("edges.csv", ids="text", backend="cpu")
    assert (result, result.edges) == (0, 1)
    assert os.listdir() == ["edges.csv"]


def test_workers_listen_on_loopback_alone():
    with dasktc.cluster(workers=1, backend="cpu") as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        addresses = [client.scheduler.address, client.dashboard_link, *workers]
        addresses += [worker["nanny"] for worker in workers.values()]
        assert all(re.match(r"\w+://(127\.0\.0\.1|localhost)[:/]", address) for address in addresses), addresses


def test_the_report_runs_no_script_of_a_name():
    name = "<script>alert(1)</script>\"'&.csv"
    result = dasktc.triangle_count(([0, 1, 2], [1, 2, 0]), backend="cpu")
    assert "<script>alert" not in page(result, name)


URL = f"http://joe:{SECRET}@127.0.0.1:1/g.csv?X-Amz-Signature={SECRET}1&part=3&sv=2&access_token={SECRET}2#top"


def test_secrets_of_urls_are_not_shown(capsys):
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(URL)
    assert SECRET not in str(caught.value) + repr(caught.value)
    assert "part=3&sv=2" in str(caught.value), "what is no secret is"
    assert main(["count", URL]) == 2
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    assert "joe:***@" in said.err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://key:secret@bucket/a.parquet", "s3://key:***@bucket/a.parquet"),
        ("ftp://:secret@host", "ftp://:***@host"),
        ("sftp://joe:se@cr@et@host/a@b", "sftp://joe:***@host/a@b"),
        ("tcp://127.0.0.1:8786 and a@b:c@d", "tcp://127.0.0.1:8786 and a@b:c@d"),
        ("abfs://c/x?sv=1&sig=a%2Fb==; next", "abfs://c/x?sv=1&sig=***; next"),
        ("https://host/a?X-Goog-Credential=me&y=2", "https://host/a?X-Goog-Credential=***&y=2"),
        ("/home/a?token=1", "/home/a?token=1"),
    ],
)
def test_what_a_secret_is(text, shown):
    assert without_secrets(text) == shown
    assert str(pickle.loads(pickle.dumps(DasktcError(text)))) == shown


def test_every_promise_names_a_test():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / ".github" / "SECURITY.md").read_text())
    assert len(named) >= 6
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), (file, test)
