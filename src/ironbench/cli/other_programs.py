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
    """Equivalent options of `ironbench run`, with `{}` in place of the value. A text that does not begin with `-`
    starts with the name of a workload. Empty if there is no equivalent."""
    remark: str = ""
    """Remark on the reference page. If `equivalent` is empty, the remark is also the hint."""
    values: Mapping[str, str] = field(default_factory=dict)
    """ironbench's values, by the value of the other program. Values that are the same in both programs are left out."""

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
    """Names of tests on the program's command line. They are values of the workload's option `test`."""

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
    """Returns ironbench's equivalents for all options of another program in a command line. Returns an empty text if
    `unknown` is not an option of such a program.

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
    """Returns the program's options in a command line, with their values. Options that mean the same in ironbench are
    left out."""
    found: dict[str, str] = {}
    for name, value in _options(words, program):
        option = program.option(name)
        if option and (name not in known or known[name] != known.get(option.equivalent.partition(" ")[0])):
            found.setdefault(name, value)
    return found


def _options(words: Sequence[str], program: OtherProgram) -> Iterator[tuple[str, str]]:
    """Yields the options in a command line with their values, read as the other program would."""
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
    """Returns the equivalent options, or a whole command if a workload is among them or the word `run` is missing."""
    workloads = [one for one in pieces if not one.startswith("-")]
    options = list(dict.fromkeys(one for one in pieces if one.startswith("-")))
    if workloads or command == "ironbench":
        return " ".join(["ironbench run", *(workloads[-1:] or [program.workload]), *options])
    return " ".join(options)
