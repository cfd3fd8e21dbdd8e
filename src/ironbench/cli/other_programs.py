"""Translates options of pgbench and sysbench to options of ironbench, for hints and for the reference page."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise

from ironbench.errors import shortened

_LONGEST = 60
"""Maximum number of characters that a hint shows of a value."""


@dataclass(frozen=True, slots=True)
class OtherOption:
    """An option of another program."""

    names: tuple[str, ...]
    """Spellings of the option on the command line, without a value."""
    value: str = ""
    """Placeholder of the option's value; empty for a switch."""
    equivalent: str = ""
    """Options of `ironbench run` with the same meaning, with `{}` in place of the value. If the text does not begin
    with `-`, its first word is the name of a workload. Empty if ironbench has no equivalent."""
    remark: str = ""
    """Remark on the reference page. If `equivalent` is empty, the remark is also the hint."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values that ironbench writes differently. The key is the other program's value; the value is ironbench's."""

    def words(self, value: str) -> str:
        """Returns ironbench's equivalent for this value of the option."""
        return self.equivalent.format(shlex.quote(shortened(self.values.get(value, value), _LONGEST)))


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """Another program with its options."""

    name: str
    options: tuple[OtherOption, ...]
    workload: str
    """The workload that the program runs by default."""
    example: str
    """Command lines of the program, each followed by the equivalent command line of ironbench."""
    tests: tuple[str, ...] = ()
    """Names of tests on the program's command line, which are values of the workload's option `test`."""

    def option(self, name: str) -> OtherOption | None:
        """Returns the option with this name; sysbench also accepts underscores in names."""
        return next((one for one in self.options if name.replace("_", "-") in one.names), None)


@cache
def programs() -> tuple[OtherProgram, ...]:
    """Returns the other programs in the order of the reference page."""
    text = files("ironbench.catalogue").joinpath("other_programs.toml").read_text(encoding="utf-8")
    return tuple(
        OtherProgram(
            name,
            tuple(OtherOption(**{**option, "names": tuple(option["names"])}) for option in program["options"]),
            program["workload"],
            program["example"],
            tuple(program.get("tests", ())),
        )
        for name, program in tomllib.loads(text).items()
    )


def hint(words: Sequence[str], unknown: str, known: Mapping[str, str], command: str) -> str:
    """Recognises a command line that was written for another program, and suggests the equivalent options of ironbench.
    Returns an empty text if `unknown` is not an option of a known program.

    `words`: the words after `ironbench`. `known`: for each option of the command, the name of its parameter. `command`:
    the full name of the command.
    """
    candidates = [one for one in programs() if one.option(unknown)]
    found = [_foreign(words, one, known) for one in candidates]
    if not candidates or (unknown == "-h" and not any(one.get("-h") for one in found)):  # the user requests help
        return ""
    given = max(found, key=len)
    program = candidates[found.index(given)]
    owners = [one.name for one, others in zip(candidates, found, strict=True) if others.keys() == given.keys()]
    options = {name: option for name in given if (option := program.option(name))}
    equivalents = [option.words(given[name] or option.value) for name, option in options.items() if option.equivalent]
    equivalents += [f"{program.workload} --with test={word}" for word in words if word in program.tests]
    parts = [f"instead, use {_command(equivalents, program, command)}"] if equivalents else []
    for remark in dict.fromkeys(option.remark for option in options.values() if not option.equivalent):
        named = ", ".join(name for name, option in options.items() if option.remark == remark)
        parts.append(f"{named}: {remark}" if len(given) > 1 else remark)
    kind = "is an option" if len(given) == 1 else "are options"
    return f"{', '.join(given)} {kind} of {' and '.join(owners)}; {'; '.join(parts)}"


def _foreign(words: Sequence[str], program: OtherProgram, known: Mapping[str, str]) -> dict[str, str]:
    """Returns the other program's options in a command line, with their values. Options with the same name and meaning
    in ironbench are left out."""
    found: dict[str, str] = {}
    for name, value in _options(words, program):
        option = program.option(name)
        if option and (name not in known or known[name] != known.get(option.equivalent.partition(" ")[0])):
            found.setdefault(name, value)
    return found


def _options(words: Sequence[str], program: OtherProgram) -> Iterator[tuple[str, str]]:
    """Splits a command line into options and their values in the way in which the other program would."""
    for word, following in pairwise([*words, ""]):
        if word == "--":
            return
        following = "" if following.startswith("-") else following
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            option = program.option(name)
            yield name, value if equals or not (option and option.value) else following
            continue
        rest = word[1:] if word.startswith("-") else ""
        while rest:
            name, rest = f"-{rest[0]}", rest[1:]
            option = program.option(name)
            if option and option.value:
                yield name, rest or following
                rest = ""
            else:
                yield name, ""


def _command(pieces: Sequence[str], program: OtherProgram, command: str) -> str:
    """Joins the pieces of a suggestion. Returns only options if the user typed `ironbench run` and the suggestion does
    not change the workload. Otherwise, returns a whole command."""
    workloads = [one for one in pieces if not one.startswith("-")]
    options = list(dict.fromkeys(one for one in pieces if one.startswith("-")))
    if workloads or command == "ironbench":
        return " ".join(["ironbench run", *(workloads[-1:] or [program.workload]), *options])
    return " ".join(options)
