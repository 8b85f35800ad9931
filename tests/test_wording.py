"""Messages name options in the language of who reads them, and counts agree with their nouns."""

from __future__ import annotations

import ast
import copy
import logging
import pickle
import re
from pathlib import Path

import pandas as pd
import pytest
from keywords import keywords

import dasktc
from dasktc.cli.main import main
from dasktc.errors import LONGEST, CountError, DasktcError, InputError, neutral_text
from dasktc.wording import advice, command_line, option, plural, rendered

FACTS = [
    (option("kernel", "hubb"), "kernel='hubb'", "--kernel hubb"),
    (option("memory", "4 GB"), "memory='4 GB'", "--memory '4 GB'"),
    (option("work_dir", ""), "work_dir=''", "--work-dir ''"),
    (option("parts", 4), "parts=4", "--parts 4"),
    (option("column_parts", 4), "column_parts=4", "--column-parts 4"),
    (option("columns", ("a", "b")), "columns=('a', 'b')", "--columns a,b"),
    (option("sort_rows", False), "sort_rows=False", "--no-sort-rows"),
    (option("force", True), "force=True", "--force"),
    (option("host_memory"), "host_memory", "--host-memory"),
]
ADVICE = [
    (advice(parts=4), "method=Method(parts=4)", "--parts 4"),
    (advice(partition="hash2d", parts=4), "method=Method(partition='hash2d', parts=4)", "--partition hash2d --parts 4"),
    (advice("work_dir"), "run=RunOptions(work_dir=...)", "--work-dir"),
    (advice(workers=4), "client=dasktc.cluster(workers=4)", "--workers 4"),
    (advice(skip=1, columns=(0, 2)), "skip=1, columns=(0, 2)", "--skip 1 --columns 0,2"),
    (advice("memory", kernel="hub"), "memory=..., method=Method(kernel='hub')", "--memory --kernel hub"),
    (
        advice("tls_client_cert"),
        "client=dasktc.cluster(scheduler=..., security=Security(tls_client_cert=...))",
        "--tls-cert",
    ),
]


@pytest.mark.parametrize(("text", "python", "command"), FACTS + ADVICE, ids=[case[1] for case in FACTS + ADVICE])
def test_an_option_is_named_as_its_caller_writes_it(text, python, command):
    assert rendered(text) == python
    with command_line():
        assert rendered(text) == command
    assert rendered(text) == python


@pytest.mark.parametrize("kind", [DasktcError, InputError, CountError])
def test_an_error_speaks_the_language_of_the_process_that_has_it(kind):
    raised = kind(f"{option('kernel', 'hubb')} does not exist; take {advice(kernel='hub')}")
    python = "kernel='hubb' does not exist; take method=Method(kernel='hub')"
    assert str(raised) == raised.args[0] == python
    assert repr(raised) == f"{kind.__name__}({python!r})"
    raised.add_note("a note")
    travelling = pickle.dumps(raised)
    with command_line():
        received = pickle.loads(travelling)
    assert str(received) == received.args[0] == "--kernel hubb does not exist; take --kernel hub"
    assert type(received) is kind
    assert (received.exit_code, received.__notes__) == (raised.exit_code, ["a note"])
    assert str(copy.copy(received)) == str(pickle.loads(pickle.dumps(received))) == python


def test_an_error_that_cites_another_keeps_both_languages():
    with command_line():
        cause = InputError(f"{option('parts', 0)} is below 1; leave it out")
        assert str(CountError(f"refused: {neutral_text(cause)}")) == "refused: --parts 0 is below 1; leave it out"
    assert str(CountError(f"refused: {neutral_text(cause)}")) == "refused: parts=0 is below 1; leave it out"
    assert neutral_text(ValueError("two\nlines")) == "two lines"


def test_the_limit_of_a_message_holds_for_what_is_shown():
    many = "; ".join([option("kernel", "k" * 20)] * 13)
    assert len(many) > LONGEST
    assert str(InputError(many)) == rendered(many)
    with command_line():
        assert len(str(InputError(many * 2))) <= LONGEST


def test_secrets_are_in_neither_language_nor_in_a_pickle():
    error = InputError(f"{option('scheduler', 'tls://me:word@host?token=t0k')} does not answer; check it")
    with command_line():
        other = InputError(f"{option('scheduler', 'tls://me:word@host?token=t0k')} does not answer; check it")
    assert str(error) == "scheduler='tls://me:***@host?token=***' does not answer; check it"
    assert str(other) == "--scheduler 'tls://me:***@host?token=***' does not answer; check it"
    for text in (pickle.dumps(error), pickle.dumps(other)):
        assert not any(secret in text for secret in (b"word", b"t0k"))


def test_log_records_are_rendered_before_any_handler_has_them(caplog):
    with caplog.at_level(logging.WARNING, "dasktc"):
        logging.getLogger("dasktc").warning("take %s or %s, 100 %%", advice("memory"), advice(kernel="hub"))
        with command_line():
            logging.getLogger("dasktc").warning("take %s", advice(kernel="hub"))
    assert caplog.messages == ["take memory=... or method=Method(kernel='hub'), 100 %", "take --kernel hub"]


def test_an_input_error_is_a_value_error():
    with pytest.raises(ValueError, match="does not exist"):
        dasktc.triangle_count([(0, 1)], backend="gpu")
    assert issubclass(InputError, ValueError)
    assert not issubclass(CountError, ValueError)


@pytest.mark.parametrize(
    ("name", "wrong", "near"),
    [
        ("backend", "CUDA", "cuda"),
        ("kernel", "hubb", "hub"),
        ("partition", "hash2", "hash2d"),
        ("reorder", "degre", "degree"),
        ("assign", "randm", "random"),
        ("proxies", "ltsc", "lstc"),
        ("distribute", "allways", "always"),
        ("ids", "txt", "text"),
        ("format", "cvs", "csv"),
    ],
)
def test_a_name_that_nearly_exists_is_proposed(tmp_path, name, wrong, near):
    (tmp_path / "g.txt").write_text("0 1\n")
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(tmp_path / "g.txt", **keywords(**{name: wrong}))
    assert str(caught.value).startswith(f"{name}={wrong!r} does not exist: did you mean {near!r}? Choose one of ")


@pytest.mark.parametrize(
    ("name", "wrong", "near"),
    [("kernel", "hubb", "hub"), ("partition", "hash2", "hash2d"), ("reorder", "degre", "degree")],
)
def test_a_name_that_nearly_exists_is_proposed_at_the_command_line(name, wrong, near, capsys):
    assert main(["count", "edges.txt", f"--{name}", wrong]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"dasktc: error: --{name} {wrong} does not exist: did you mean {near!r}? Choose one of ")


@pytest.mark.parametrize(
    ("given", "helps"),
    [
        (["count"], "dasktc count"),
        (["count", "a", "--kernl", "hub"], "dasktc count"),
        (["plan", "--vertices", "x"], "dasktc plan"),
        (["generate", "kronecker", "out", "--scale", "x"], "dasktc generate kronecker"),
        (["cont"], "dasktc"),
    ],
)
def test_usage_errors_name_the_help_of_the_command(given, helps, capsys):
    assert main(given) == 2
    assert capsys.readouterr().err.endswith(f" See `{helps} --help`.\n")


@pytest.mark.parametrize(
    ("number", "one", "many", "text"),
    [
        (0, "worker", None, "0 workers"),
        (1, "worker", None, "1 worker"),
        (2, "worker", None, "2 workers"),
        (1, "vertex", None, "1 vertex"),
        (2000, "vertex", None, "2,000 vertices"),
        (2, "entry", None, "2 entries"),
        (1, "row has", "rows have", "1 row has"),
        (0, "row has", "rows have", "0 rows have"),
    ],
)
def test_a_noun_agrees_with_its_number(number, one, many, text):
    assert plural(number, one, many) == text


PACKAGE = Path(dasktc.__file__).parent
AT_TERMINAL = ("cli/", "bench/", "api/repeat.py", "wording.py")
AT_TERMINAL += (
    "api/",
    "counting/checkpoint.py",
    "counting/outputs.py",
    "executors/connect.py",
    "options.py",
)  # PENDING
"""Where texts are for the command line alone, or are a command, and the mechanism."""
OTHER_PROGRAMS = {
    "backends/cuda/nvrtc.py": r"--std=c\+\+17",  # NVRTC's
    "counting/html_report.py": r"--(ink|muted|page|panel|line|bar|mark)\b",  # names of CSS
    "executors/gpu_discovery.py": r"--(query-gpu|format=csv|id)\b",  # nvidia-smi's
    "executors/signals.py": r"^--(workers|scheduler|debug)$",  # compared with what the process was given
}
HELD = "kernel|partition|parts|splits|reorder|assign|column_parts|proxies|work_dir|host_memory|retries|worker_timeout"
ELSEWHERE = rf"(?<![\w(])({HELD}|distribute|workers|scheduler_file)=['\d{{.]"
"""What a function of Python takes in `Method`, `RunOptions` or `cluster` only, advised as if it took it by itself."""


def texts_of(path):
    """The texts in a file of the package that are no docstrings, with their lines."""
    tree = ast.parse(path.read_text())
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    documents = {id(node.value) for node in statements}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.lineno, node.value


def test_no_message_names_an_option_in_one_language_alone():
    literal = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(AT_TERMINAL):
            continue
        for line, text in texts_of(path):
            text = re.sub("`dask [^`]*`", "", text)  # a command of Dask's own
            text = re.sub(OTHER_PROGRAMS.get(name, "(?!)"), "", text)
            if re.search(r"(?<![\w-])--([a-z]|$)", text) or re.search(ELSEWHERE, text):
                literal.append(f"{name}:{line}: {text[:80]}")
    assert not literal, "\n".join(["written by hand, not by dasktc.wording:", *literal])


def test_the_search_for_literal_options_finds_them(tmp_path):
    file = tmp_path / "a.py"
    file.write_text('"""Of --kernel."""\nx = f"take --kernel {name}"\ny = "prepare with parts=2"\n')
    assert sorted(line for line, _ in texts_of(file)) == [2, 3]
    assert re.search(ELSEWHERE, "prepare with parts=2")
    assert not re.search(ELSEWHERE, "method=Method(parts=2)")


FRAME = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1], "w": 0.5})
TABLES = {
    "g.csv": lambda path: FRAME.to_csv(path, index=False),
    "g.parquet": lambda path: FRAME.to_parquet(path),
    "frame": lambda path: FRAME,
}


@pytest.mark.parametrize("columns", [("source", "dst"), ("Src", "DST")])
@pytest.mark.parametrize("name", TABLES)
def test_wrong_names_of_columns_are_mended_from_the_message(tmp_path, name, columns):
    path = tmp_path / name
    made = TABLES[name](path)
    source = str(path) if made is None else made
    with pytest.raises(InputError, match=r"did you mean columns=\('src', 'dst'\)\? Else ") as caught:
        dasktc.triangle_count(source, columns=columns)
    found = re.search(r"columns=(\('src', 'dst'\))", str(caught.value))
    assert dasktc.triangle_count(source, columns=ast.literal_eval(found[1])).triangles == 1
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(source, columns=("nothing", "like"))
    assert "did you mean" not in str(caught.value)


def test_wrong_names_of_columns_are_mended_from_the_message_of_the_command_line(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "g.csv", index=False)
    assert main(["count", str(tmp_path / "g.csv"), "--columns", "source,dest"]) == 2
    assert "; did you mean --columns src,dst? Else " in capsys.readouterr().err
    assert main(["count", str(tmp_path / "g.csv"), "--columns", "src,dst", "--quiet"]) == 0
    assert capsys.readouterr().out == "1\n"
