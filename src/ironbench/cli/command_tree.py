"""Reads all commands with their options and arguments from the parser, for shell completion and the manual page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer.main


@dataclass(frozen=True, slots=True)
class Value:
    """An option or argument, with the facts that shell completion and the manual page need."""

    names: tuple[str, ...]
    """For an option: all of its names. For an argument: its name in capitals."""
    help: str
    placeholder: str
    """Placeholder of the value; empty if the option takes no value."""
    many: bool
    """Whether the option may be given several times."""
    words: tuple[str, ...]
    """Known values. Other values may also be valid."""
    files: bool
    """Whether files or directories are valid values."""
    required: bool
    default: str
    """Default value, if the help text does not describe it."""
    variable: str
    """Environment variable that sets the option."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of commands."""

    path: str
    """Full name of the command, such as `ironbench device mount`."""
    help: str
    options: tuple[Value, ...]
    arguments: tuple[Value, ...]
    commands: tuple[Command, ...] = ()
    """Commands of the group; empty for a command without subcommands."""

    @property
    def name(self) -> str:
        return self.path.rpartition(" ")[2]

    def every(self) -> Iterator[Command]:
        """Yields this command and all commands below it."""
        yield self
        for one in self.commands:
            yield from one.every()


def commands(program: typer.Typer) -> Command:
    """Returns the program as a command whose subcommands are the commands of ironbench."""
    return _command("ironbench", typer.main.get_command(program))


def _command(path: str, parsed: Any) -> Command:
    context = typer.Context(parsed, info_name=path)
    values = [(one.param_type_name, _value(one, context)) for one in parsed.get_params(context) if not one.hidden]
    return Command(
        path,
        " ".join((parsed.help or "").split()),
        tuple(value for kind, value in values if kind == "option"),
        tuple(value for kind, value in values if kind == "argument"),
        tuple(_command(f"{path} {name}", one) for name, one in getattr(parsed, "commands", {}).items()),
    )


def _value(parameter: Any, context: Any) -> Value:
    argument = parameter.param_type_name == "argument"
    switch = not argument and parameter.is_flag
    placeholder = "" if switch else parameter.metavar or (parameter.name or "").upper()
    text = " ".join((parameter.help or "").split())
    words = () if switch else tuple(str(one.value) for one in parameter.shell_complete(context, ""))
    return Value(
        names=(placeholder,) if argument else (*parameter.opts, *parameter.secondary_opts),
        help=text,
        placeholder=placeholder,
        many=parameter.multiple or parameter.nargs == -1,
        words=words,
        files=bool(re.search("FILE|DIR", placeholder)) or (argument and (parameter.nargs == -1 or not words)),
        required=parameter.required,
        default="" if switch or parameter.default in (None, "") or "[default:" in text else str(parameter.default),
        variable=str(parameter.envvar or ""),
    )
