"""Generates the manual page ironbench(1) from the parser's commands and options. `make docs` writes the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ironbench.cli.command_tree import Command, Value

EXIT_CODES = {
    0: "success",
    1: "failure",
    2: "invalid input",
    3: "flagged or inconclusive",
    4: "claim refuted or gate failed",
    130: "interrupted",
}


def page() -> str:
    from ironbench._core import VERSION
    from ironbench.cli import VERBS, program
    from ironbench.cli.command_tree import commands

    root = commands(program(VERBS))
    lines = [
        r".\" Written by `make docs`; edit the program, not this page.",
        f'.TH IRONBENCH 1 "" "ironbench {VERSION}" "User Commands"',
        ".SH NAME",
        r"ironbench \- benchmark databases and storage, and compare configurations",
        ".SH SYNOPSIS",
        r"\fBironbench\fR \fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
        _text(root.help),
        ".SH OPTIONS",
        *_entries(root.options),
        ".SH COMMANDS",
    ]
    for command in root.every():
        if not command.commands:
            lines += [*_heading(command), *_entries((*command.arguments, *command.options))]
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", rf"\fB{code}\fR", _text(f"{meaning[0].upper()}{meaning[1:]}.")]
    lines.append(".SH ENVIRONMENT")
    for variable, names in sorted(_variables(root).items()):
        lines += [".TP", rf"\fB{variable}\fR", _text(f"Default of {', '.join(sorted(names))}.")]
    lines += [".SH SEE ALSO", r"\fBpgbench\fR(1), \fBfio\fR(1)"]
    return "\n".join([*lines, ""])


def _heading(command: Command) -> Iterator[str]:
    given = [one.placeholder.strip("[]") + ("..." if one.many else "") for one in command.arguments]
    words = [word if one.required else f"[{word}]" for word, one in zip(given, command.arguments, strict=True)]
    yield f'.SS "{_escaped(" ".join([command.path, "[OPTIONS]", *words]))}"'
    yield _text(command.help)


def _entries(values: tuple[Value, ...]) -> Iterator[str]:
    for value in values:
        if value.names == ("--help",):
            continue
        argument = not value.names[0].startswith("-")
        names = ", ".join(rf"\fB{_escaped(name)}\fR" for name in value.names)
        placeholder = rf" \fI{_escaped(value.placeholder)}\fR"
        yield ".TP"
        yield placeholder.strip() if argument else names + (placeholder if value.placeholder else "")
        yield _text(value.help + (f"  [default: {value.default}]" if value.default else ""))


def _variables(root: Command) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for command in root.every():
        for value in command.options:
            if value.variable:
                found.setdefault(value.variable, set()).add(f"`{value.names[0]}`")
    return found


def _text(text: str) -> str:
    """Returns a paragraph: names in backquotes become bold, and no line begins with a control character."""
    line = re.sub("`(.+?)`", r"\\fB\1\\fR", _escaped(text).replace("  [default", " [default"))
    return rf"\&{line}" if line.startswith((".", "'")) else line


def _escaped(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
