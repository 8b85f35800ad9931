"""Help on one screen: two examples, then the everyday options in groups. `--help-all` shows every option.

An option is declared once, with its group, and whether it is an everyday one; both helps are made of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

__all__ = [
    "GROUPS",
    "INPUT",
    "MEASURED",
    "MEMORY",
    "METHOD",
    "OUTPUT",
    "PLACE",
    "SAFETY",
    "Argument",
    "Command",
    "Declare",
    "Group",
    "Option",
    "OptionGroup",
]

EVERYTHING = "dasktc.help-all"
"""Key in the `meta` of a command's context: whether every option is shown."""
NAMES_WIDTH = 30
"""Widest column of names; help of longer ones begins on the next line."""

Rows = list[tuple[str, str]]
Chapter = tuple[str, Iterable[tuple[str, str]]]


class Option(click.Option):
    """An option of click with its place in help.

    `group` is one of GROUPS. `--help` shows the everyday ones, `--help-all` every option, with `details` beyond `help`,
    which is one short line.
    """

    def __init__(self, *names: Any, group: str, everyday: bool = False, details: str = "", **settings: Any) -> None:
        if settings.get("type") in (int, float):
            settings.setdefault("metavar", "N")
        super().__init__(*names, **settings)
        self.group, self.everyday, self.details = group, everyday, details

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return names and help; the details with `--help-all`."""
        record = super().get_help_record(ctx)
        if record is None or not (self.details and ctx.meta.get(EVERYTHING)):
            return record
        return record[0], f"{record[1]} {self.details}"


class Argument(click.Argument):
    """An argument of click that help explains, as the first row of its group: `about` is one short line."""

    everyday = True

    def __init__(self, *names: Any, group: str, about: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.group, self.about = group, about

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the argument's name, and what it is."""
        return self.metavar or self.human_readable_name + ("..." if self.nargs != 1 else ""), self.about


Declare = Callable[[Any], Any]
"""A decorator that declares an option or an argument of a command."""


class OptionGroup(str):
    """The title of a group of options; its methods declare parameters of the group, as those of click do."""

    def option(self, *names: str, **settings: Any) -> Declare:
        """Declare an option that only `--help-all` shows."""
        return click.option(*names, cls=Option, group=self, **settings)

    def everyday(self, *names: str, **settings: Any) -> Declare:
        """Declare an option that `--help` shows, too."""
        return self.option(*names, everyday=True, **settings)

    def preset(self, name: str, default: Any, help: str, **settings: Any) -> Declare:
        """Declare an everyday option whose default help shows, and gives its type unless there is one."""
        settings.setdefault("type", type(default[0] if isinstance(default, tuple) else default))
        return self.everyday(name, default=default, show_default=True, help=help, **settings)

    def flag(self, *names: str, **settings: Any) -> Declare:
        """Declare an everyday option without a value."""
        return self.everyday(*names, is_flag=True, **settings)

    def argument(self, name: str, **settings: Any) -> Declare:
        """Declare an argument."""
        return click.argument(name, cls=Argument, group=self, **settings)


INPUT, MEASURED, OUTPUT = OptionGroup("Input"), OptionGroup("What is measured"), OptionGroup("Output")
PLACE, MEMORY, METHOD = OptionGroup("Where it runs"), OptionGroup("Memory"), OptionGroup("How it counts")
SAFETY, HELP = OptionGroup("Safety"), OptionGroup("Help")
GROUPS = (INPUT, MEASURED, OUTPUT, PLACE, MEMORY, METHOD, SAFETY, HELP)
"""The groups of options, in the order of help."""


class Command(click.Command):
    """A command with examples, groups of options and `--help-all`.

    `examples` are command lines. The help of the group lists the command in its `section`. `chapters` returns further
    lists of (name, line) with their titles, which stand before the options.
    """

    def __init__(
        self,
        *arguments: Any,
        examples: Sequence[str] = (),
        section: str = "Commands",
        chapters: Callable[[], Iterable[Chapter]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.examples, self.section, self.chapters = examples, section, chapters
        self.params.append(
            Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                group=HELP,
                everyday=any(not everyday(param) for param in self.params),
                callback=_show_everything,
                help="Show all options, and more about each.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a call; where OUT follows any number of SOURCE, either may be the one that is missing."""
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            if isinstance(error.param, Argument) and error.param.nargs == -1:
                required = [param for param in self.params if isinstance(param, Argument) and param.required]
                error.param_hint = " or ".join(param.get_error_hint(ctx) for param in required)
            raise

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and its examples."""
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the chapters, and the options by group: the everyday ones, or all."""
        for title, lines in self.chapters() if self.chapters else ():
            _write(formatter, {title: list(lines)})
        groups: dict[str, Rows] = {name: [] for name in GROUPS}
        for param in self.get_params(ctx):
            if everyday(param) or ctx.meta.get(EVERYTHING):
                record = param.get_help_record(ctx)
                groups[getattr(param, "group", HELP)] += [] if record is None else [record]
        _write(formatter, groups)


class Group(Command, click.Group):
    """A command group that lists its commands by section, each with its whole first sentence."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of their definition."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, then the options."""
        sections: dict[str, Rows] = {}
        for name, command in self.commands.items():
            section = getattr(command, "section", "Commands")
            sections.setdefault(section, []).append((name, command.get_short_help_str(limit=1000)))
        _write(formatter, sections)
        super().format_options(ctx, formatter)


def everyday(param: click.Parameter) -> bool:
    """Whether `--help` shows a parameter; click's own options are everyday ones."""
    return getattr(param, "everyday", True)


def _show_everything(context: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[EVERYTHING] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


def _write(formatter: click.HelpFormatter, groups: dict[str, Rows]) -> None:
    """Write lists of names and texts, with one column for the texts of all."""
    width = min(NAMES_WIDTH, max((len(name) for rows in groups.values() for name, _ in rows), default=0))
    for title, rows in groups.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows], col_max=NAMES_WIDTH)
