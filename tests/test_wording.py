"""Messages name options in the language of who reads them, and counts agree with their nouns."""

import ast
import copy
import logging
import pickle
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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


def in_method(name, value):
    return dasktc.Method(**{name: value})


def in_run(name, value):
    return dasktc.RunOptions(**{name: value})


def in_a_run(name, value):
    return in_call("run", in_run(name, value))


def in_cluster(name, value):
    return dasktc.cluster(**{name: value})


def in_call(name, value):
    Path("g.txt").write_text("0 1\n1 2\n2 0\n")
    return dasktc.triangle_count("g.txt", **{name: value})


NEARLY = [
    (in_call, "backend", "CUDA", "cuda"),
    (in_call, "format", "mxt", "mtx"),
    (in_call, "ids", "txt", "text"),
    (in_method, "assign", "randm", "random"),
    (in_method, "kernel", "hubb", "hub"),
    (in_method, "partition", "hash2", "hash2d"),
    (in_method, "proxies", "ltsc", "lstc"),
    (in_method, "reorder", "degre", "degree"),
    (in_run, "distribute", "allways", "always"),
]


@pytest.mark.parametrize(("call", "name", "wrong", "near"), NEARLY)
def test_a_name_that_nearly_exists_is_proposed_in_both_languages(tmp_path, monkeypatch, call, name, wrong, near):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        call(name, wrong)
    asks = f"does not exist: did you mean {near!r}? Choose one of "
    assert str(caught.value).startswith(f"{name}={wrong!r} {asks}")
    with command_line(), pytest.raises(InputError) as caught:
        call(name, wrong)
    assert str(caught.value).startswith(f"--{name} {wrong} {asks}")


def test_a_method_that_nearly_exists_is_proposed():
    with pytest.raises(InputError, match="method='trusst' does not exist: did you mean 'trust'"):
        dasktc.triangle_count([(0, 1)], method="trusst")


@pytest.mark.parametrize("name", ["assign", "kernel", "partition", "reorder"])
def test_a_name_that_nearly_exists_is_proposed_at_the_command_line(name, capsys):
    _, _, wrong, near = next(case for case in NEARLY if case[1] == name)
    assert main(["count", "edges.txt", f"--{name}", wrong]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"dasktc: error: --{name} {wrong} does not exist: did you mean {near!r}? Choose one of ")


WRONG = [
    (in_call, "checkpoint", "g.txt", "--checkpoint g.txt"),
    (in_call, "memory", "much", "--memory much"),
    (in_call, "per_edge", "", "--per-edge ''"),
    (in_call, "per_vertex", "", "--per-vertex ''"),
    (in_call, "report", "", "--report ''"),
    (in_call, "skip", -1, "--skip -1"),
    (in_call, "threads", 0, "--threads 0"),
    (in_method, "column_parts", 0, "--column-parts 0"),
    (in_method, "parts", 0, "--parts 0"),
    (in_method, "splits", -1, "--splits -1"),
    (in_run, "host_memory", "much", "--host-memory much"),
    (in_run, "retries", -1, "--retries -1"),
    (in_run, "worker_timeout", -0.5, "--worker-timeout -0.5"),
    (in_a_run, "work_dir", "nowhere", "--work-dir nowhere"),
    (in_cluster, "workers", 0, "--workers 0"),
]


@pytest.mark.parametrize(("call", "name", "value", "command"), WRONG, ids=[case[1] for case in WRONG])
def test_a_wrong_value_is_shown_as_it_was_given(tmp_path, monkeypatch, capsys, call, name, value, command):
    monkeypatch.chdir(tmp_path)
    Path("g.txt").write_text("0 1\n1 2\n2 0\n")
    with pytest.raises(InputError) as caught:
        call(name, value)
    assert str(caught.value).startswith(f"{name}={value!r} is ")
    assert main(["count", "g.txt", f"--{name.replace('_', '-')}", str(value)]) == 2
    assert capsys.readouterr().err.startswith(f"dasktc: error: {command} is ")


def test_unsorted_rows_and_places_are_named_in_both_languages(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("g.txt").write_text("0 1\n")
    with pytest.raises(InputError, match=r"^sort_rows=False is given, .* method=Method\(kernel='trust'\) or "):
        dasktc.Method(sort_rows=False)
    assert main(["count", "g.txt", "--no-sort-rows"]) == 2
    assert re.search(r"error: --no-sort-rows is given, .* --kernel trust or --kernel hindex", capsys.readouterr().err)
    with pytest.raises(InputError, match=r"^client and threads were both given: "):
        dasktc.triangle_count("g.txt", "tcp://127.0.0.1:1", threads=1)
    assert main(["count", "g.txt", "--scheduler", "tcp://127.0.0.1:1", "--threads", "1"]) == 2
    assert re.search("error: --scheduler and --threads were both given: ", capsys.readouterr().err)
    with pytest.raises(InputError, match=r"^scheduler and scheduler_file were both given: "):
        dasktc.cluster(scheduler="tcp://127.0.0.1:1", scheduler_file="g.json")


def advised(message):
    """The arguments of `triangle_count` and its like that a message of Python advises first."""
    names = {"Method": dict, "RunOptions": dict}
    code = re.search(r"(?:method|run)=\w+\([^()]*\)|(?:memory|backend)='[^']*'|force=True", message.partition(": ")[2])
    return eval(f"dict({code[0]})", names)


FOLLOWED = [
    ({"sort_rows": False}, ["--no-sort-rows"]),
    ({"column_parts": 2}, ["--column-parts", "2"]),
    ({"proxies": "tight", "partition": "whole"}, ["--proxies", "tight", "--partition", "whole"]),
]


@pytest.mark.parametrize(("method", "arguments"), FOLLOWED, ids=["sort_rows", "column_parts", "proxies"])
def test_advice_about_a_method_works_in_both_languages(tmp_path, capsys, method, arguments):
    path = str(tmp_path / "g.txt")
    Path(path).write_text("0 1\n1 2\n2 0\n")
    with pytest.raises(InputError) as caught:
        dasktc.Method(**method)
    mended = dasktc.Method(**(method | advised(str(caught.value))["method"]))
    assert dasktc.triangle_count(path, method=mended).triangles == 1
    assert main(["count", path, *arguments, "--quiet"]) == 2
    option = re.search(r"(?:give|take) (--\w+ \w+)", capsys.readouterr().err)
    assert main(["count", path, *arguments, *option[1].split(), "--quiet"]) == 0
    assert capsys.readouterr().out == "1\n"


TWELVE = [(u, v) for u in range(12) for v in range(u)]


def test_advice_about_memory_partitions_and_files_works(tmp_path):
    whole = dasktc.Method(partition="whole")
    graph = np.array(np.triu_indices(200, 1)).T
    need = dasktc.triangle_count(graph, memory="1GB", method=whole).plan.bytes_per_task
    with pytest.raises(InputError) as caught:
        dasktc.triangle_count(graph, memory=need - 1, method=whole)
    method = dasktc.Method(**advised(str(caught.value))["method"])
    assert dasktc.triangle_count(graph, memory=need - 1, method=method).triangles == 1_313_400
    cut = dasktc.prepare(TWELVE, method=dasktc.Method(partition="vertical", parts=2))
    for ask in (
        lambda graph: int(graph.cliques(4)) == 495,
        lambda graph: graph.update(add=[(0, 99)]).graph.edges == 67,
    ):
        with pytest.raises(InputError) as caught:
            ask(cut)
        assert ask(dasktc.prepare(TWELVE, method=dasktc.Method(**advised(str(caught.value))["method"])))
    out = tmp_path / "v.csv"
    for given in ({}, {"force": True}):
        dasktc.triangle_count(TWELVE, per_vertex=out, **given)
        with pytest.raises(InputError) as caught:
            dasktc.triangle_count(TWELVE, per_vertex=out)
        assert advised(str(caught.value)) == {"force": True}


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
"""Where texts are for the command line alone, or are a command, and the mechanism."""
OTHER_PROGRAMS = {
    "backends/cuda/nvrtc.py": r"--std=c\+\+17",  # NVRTC's
    "reports/html_report.py": r"--(ink|muted|page|panel|line|bar|mark)\b",  # names of CSS
    "executors/dask/page.py": r"--tc-[a-z]+\b",  # likewise
    "executors/process/gpu_discovery.py": r"--(query-gpu|format=csv|id)\b",  # nvidia-smi's
    "executors/process/signals.py": r"^--(workers|scheduler|debug)$",  # compared with what the process was given
}
HELD = "kernel|partition|parts|splits|reorder|assign|column_parts|proxies|work_dir|host_memory|retries|worker_timeout"
ELSEWHERE = rf"(?<![\w(])({HELD}|distribute|workers|scheduler_file)=['\d{{.]"
"""What a function of Python takes in `Method`, `RunOptions` or `cluster` only, advised as if it took it by itself."""


def texts_of(path):
    """The texts in a file of the package that are no docstrings, with their lines."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Expr | ast.Constant)]
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
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
    for refused in (("nothing", "like"), ("0", "7")):
        with pytest.raises(InputError) as caught:
            dasktc.triangle_count(source, columns=refused)
        assert "did you mean" not in str(caught.value)


def test_wrong_names_of_columns_are_mended_from_the_message_of_the_command_line(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "g.csv", index=False)
    assert main(["count", str(tmp_path / "g.csv"), "--columns", "source,dest"]) == 2
    assert "; did you mean --columns src,dst? Else " in capsys.readouterr().err
    assert main(["count", str(tmp_path / "g.csv"), "--columns", "src,dst", "--quiet"]) == 0
    assert capsys.readouterr().out == "1\n"


ZERO, ONE, TWO = [(0, 0)], [(0, 1), (1, 0), (0, 0)], [(0, 1), (1, 2), (2, 0), (1, 0), (0, 1), (0, 0), (1, 1)]
COUNTED = {
    "0": (ZERO, "1 loop, 0 duplicates", "0 vertices, 0 edges", "0 wedges"),
    "1": (ONE, "1 loop, 1 duplicate", "2 vertices, 1 edge", "0 wedges"),
    "2": (TWO, "2 loops, 2 duplicates", "3 vertices, 3 edges", "1 wedge"),
}


@pytest.mark.parametrize("case", COUNTED)
def test_counts_in_summaries_agree_with_their_nouns(case):
    rows, dropped, graph, wedges = COUNTED[case]
    result = dasktc.triangle_count(rows, method=dasktc.Method(splits=1))
    for text in (repr(result), result._repr_html_(), repr(dasktc.estimate(rows))):
        assert dropped in text
    assert wedges in repr(result)
    assert repr(result).count("1 task") == 1
    assert "1 tasks" not in repr(result)
    assert graph in str(result.plan)
    assert graph in str(dasktc.prepare(rows).plan)


@pytest.mark.parametrize(("number", "noun"), [(1, "1 id that is"), (2, "2 ids that are")])
def test_counts_in_errors_agree_with_their_nouns(tmp_path, number, noun):
    graph = dasktc.prepare(TWO)
    with pytest.raises(InputError, match=f"^vertices has {noun} not in the graph"):
        graph.triangles(vertices=[0, 97, 98][: number + 1])
    out = tmp_path / "out"
    out.mkdir()
    for name in "ab"[:number]:
        (out / name).touch()
    with pytest.raises(InputError, match=f"is a folder with {'1 entry' if number == 1 else '2 entries'} "):
        graph.save(out, force=True)
    with pytest.raises(InputError, match="names 1 column: " if number == 1 else "names 3 columns: "):
        dasktc.triangle_count(TWO, columns=("a", "b", "c") if number == 2 else ("a",))


def test_errors_made_on_workers_speak_the_language_of_the_client(tmp_path, client):
    path = tmp_path / "g.txt"
    path.write_text("".join(f"{row} {row + 1}\n" for row in range(200_000)) + "abc 5\n")
    elsewhere = dasktc.RunOptions(distribute="always")
    for language, advises in ((nullcontext, "; use ids='text' if"), (command_line, "; use --ids text if")):
        with language(), pytest.raises(InputError, match=r"line 200,?001 .* holds 'abc'") as caught:
            dasktc.triangle_count(path, client, run=elsewhere)
        assert advises in str(caught.value)
