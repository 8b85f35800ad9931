"""Shell completion: the scripts, and the answers that they get."""

import shutil
import subprocess
import sys

import pytest
from click.shell_completion import BashComplete

from dasktc.bench.papers.run import FIGURES
from dasktc.cli.main import COMPLETE, SHELLS, cli, main
from dasktc.registry import ORDERS, SCHEMES, kernel_names


def completed(line):
    *words, last = line.split(" ")
    return [item.value for item in BashComplete(cli, {}, "dasktc", COMPLETE).get_completions(words, last)]


def test_names_are_those_of_the_registries():
    assert completed("count --kernel ") == ["auto", *kernel_names()]
    assert completed("count --kernel t") == [name for name in kernel_names() if name.startswith("t")]
    assert completed("plan --reorder ") == ["auto", *ORDERS]
    assert completed("truss --partition ") == ["auto", *SCHEMES]
    assert completed("bench papers lstc-") == sorted(name for name in FIGURES if name.startswith("lstc-"))
    assert completed("bench papers f")[0] == "fox"
    assert completed("pre") == ["prepare"]
    assert completed("completion ") == list(SHELLS)
    assert "--per-vertex" in completed("count --p")


@pytest.mark.parametrize("line", ["count gra", "count --checkpoint gra", "prepare gra", "generate random gra"])
def test_files_are_left_to_the_shell(line):
    *words, last = line.split(" ")
    (item,) = BashComplete(cli, {}, "dasktc", COMPLETE).get_completions(words, last)
    assert (item.type, item.value) == ("file", "gra")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{COMPLETE}={shell}_complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.fixture
def program(tmp_path):
    """A folder with a program `dasktc` that runs the code under test."""
    (tmp_path / "dasktc").write_text(f'#!/bin/sh\nexec {sys.executable} -m dasktc "$@"\n')
    (tmp_path / "dasktc").chmod(0o755)
    return str(tmp_path)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes(program):
    script = """PATH=$1:$PATH; eval "$(dasktc completion bash)"
        COMP_WORDS=(dasktc count --kernel me) COMP_CWORD=3; _dasktc_completion dasktc; echo "${COMPREPLY[@]}" """
    done = subprocess.run(["bash", "-c", script, "bash", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("merge\n", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish_completes(program):
    script = """set -x PATH $argv[1] $PATH; dasktc completion fish | source
        complete -C "dasktc count --kernel me"; complete -C "dasktc bench papers trust-fig14" """
    done = subprocess.run(["fish", "-c", script, program], capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["merge", "trust-fig14"], "")
