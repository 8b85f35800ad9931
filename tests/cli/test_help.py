"""Help: one screen for everyday use, with two examples; everything behind --help-all; names explained."""

import json
import shlex

import click
import pytest

from dasktc import registry
from dasktc.cli.help import GROUPS
from dasktc.cli.main import cli, main

LINES, COLUMNS = 40, 80


def commands(command, *path):
    """Every command and group with its words."""
    yield path, command
    for name, one in command.commands.items() if isinstance(command, click.Group) else ():
        yield from commands(one, *path, name)


COMMANDS = dict(commands(cli))
every_command = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


@pytest.fixture
def help_of(monkeypatch, capsys):
    """Ask for a command's help in a terminal of 80 columns."""

    def ask(path, flag="--help"):
        monkeypatch.setenv("COLUMNS", str(COLUMNS))
        assert main([*path, flag]) == 0
        return capsys.readouterr().out

    return ask


def rows(text, groups=GROUPS):
    """The rows of the groups of options: names, and lines of text that belong to them."""
    group, found = None, []
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            group = line.rstrip(":")
        elif group in groups and line.startswith("  ") and not line.startswith("   "):
            found.append([line])
        elif group in groups and line.strip():
            found[-1].append(line)
    return found


@every_command
def test_help_is_one_screen(path, help_of):
    lines = help_of(path).splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    assert lines[0].startswith(" ".join(["Usage: dasktc", *path]))
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles[0] == "Examples:"
    assert [title.rstrip(":") for title in titles if title.rstrip(":") in GROUPS] == [
        group for group in GROUPS if f"{group}:" in titles
    ]


@pytest.mark.parametrize("path", [path for path, of in COMMANDS.items() if isinstance(of, click.Group)], ids=" ".join)
def test_a_group_lists_its_commands_with_whole_sentences(path, help_of):
    lines = help_of(path).splitlines()
    for name, command in COMMANDS[path].commands.items():
        sentence = command.help.splitlines()[0].removesuffix(".")
        assert [line for line in lines if line.rstrip(".").split() == [name, *sentence.split()]]


@every_command
def test_each_everyday_option_is_one_line(path, help_of):
    found = rows(help_of(path))
    assert found
    for lines in found:
        assert len(lines) == 1, lines


@every_command
def test_help_all_has_every_parameter(path, help_of):
    text = help_of(path, "--help-all")
    assert max(map(len, text.splitlines())) <= COLUMNS
    names = [" ".join(lines).split("  ")[1] for lines in rows(text)]
    context = click.Context(COMMANDS[path], info_name="dasktc")
    for param in COMMANDS[path].get_params(context):
        words = [*param.opts, *param.secondary_opts] if isinstance(param, click.Option) else [param.name.upper()]
        known = [name for name in names if set(words) <= {word.strip("[],.") for word in name.split(" ")}]
        assert known or param.name == "figures", (param.name, names)


@every_command
def test_everyday_options_are_among_all(path, help_of):
    few, many = rows(help_of(path)), rows(help_of(path, "--help-all"))
    all_names = {lines[0].split("  ")[1] for lines in many}
    assert {lines[0].split("  ")[1] for lines in few} <= all_names
    hidden = len(many) > len(few) + ("--help-all" not in help_of(path))
    assert hidden == ("--help-all" in help_of(path))


@every_command
def test_two_examples_parse(path, help_of):
    """By click, with the checks of every option; a word of the shell around them is not read."""
    examples = COMMANDS[path].examples
    assert len(examples) == 2
    assert all(f"  {example}\n" in help_of(path) for example in examples)
    for example in examples:
        words = shlex.split(example.removeprefix('eval "$(').removesuffix(')"'))
        assert words[0] == "dasktc"
        assert tuple(words[1 : 1 + len(path)]) == path
        parsed(words[1:])


def parsed(words):
    """The context of a command line that is read and not run; groups have no options of their own."""
    path = next(tuple(words[:size]) for size in (2, 1) if tuple(words[:size]) in COMMANDS)
    assert not isinstance(COMMANDS[path], click.Group)
    return COMMANDS[path].make_context(" ".join(path), words[len(path) :])


def test_an_example_with_a_wrong_option_is_found():
    with pytest.raises(click.UsageError, match="No such option"):
        parsed(shlex.split("count graph.csv --wrong 1"))
    with pytest.raises(click.UsageError, match="is not a valid integer"):
        parsed(shlex.split("generate kronecker graph.txt --scale many"))


RUN = [
    example
    for path, command in COMMANDS.items()
    for example in command.examples
    if path and path[0] != "bench" and not any(word in example for word in ("eval", "--workers", "--warm-up"))
]


@pytest.mark.parametrize("example", RUN)
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    """Those of commands that are quick and start no processes, with a small graph in the place of theirs."""
    monkeypatch.chdir(tmp_path)
    pairs = [(u, v) for u in range(12) for v in range(u) if (u * v) % 5 != 1]
    (tmp_path / "graph.csv").write_text("source,target,weight\n" + "".join(f"{u},{v},2\n" for u, v in pairs))
    words = shlex.split(example)[1:]
    if words[:1] == ["generate"] and not {"--scale", "--side", "--stars", "--edges"} & set(words):
        pytest.skip("the papers' sizes take minutes")
    assert main(words) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert said.out
    assert not said.err


def test_names_are_explained_by_the_registries(capsys):
    assert main(["info", "--methods"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= COLUMNS
    shown = " ".join(text.split())
    for names in (registry.METHODS, registry.SCHEMES, registry.ORDERS, registry.ASSIGNMENTS):
        for name, line in names.lines():
            assert f" {name} {line}." in shown
    for name, line in registry.kernel_lines():
        assert f" {name} {line}." in shown
    assert main(["info", "--methods", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["kernels"]) == list(registry.kernel_names())
    assert found["partitions_with_parts"] == [
        name for name in registry.SCHEMES if not registry.SCHEMES[name].replicated
    ]
