"""Translates options and words of pgbench, sysbench and HammerDB to options of ironbench, for hints and for the
reference page."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import PurePath
from urllib.parse import quote

from ironbench.errors import InputError, shortened

_ADDRESS_OPTIONS = {
    "HOST": ("host", "h"),
    "PORT": ("port", "p"),
    "USER": ("user", "username", "U"),
    "DATABASE": ("db", "dbname", "d"),
    "FILE": ("socket",),
}
"""Placeholders in a suggested DSN, with the last word of the options that contain the value."""
_TLS = "tls=require"
_LONGEST = 60
"""Maximum number of characters that a hint shows of a value, except in a DSN."""


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
    remark_in_hint: bool = False
    """Whether a hint also shows the remark."""

    def words(self, value: str) -> str:
        """Returns ironbench's equivalent for this value of the option."""
        return self.equivalent.format(shlex.quote(shortened(self.values.get(value, value), _LONGEST)))

    def suits(self, names: Container[str]) -> bool:
        """Returns whether ironbench's equivalent can be used with a workload that has options with these names."""
        kind, _, setting = self.equivalent.partition(" ")
        return kind != "--with" or setting.partition("=")[0] in names


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
    prefixes: tuple[str, ...] = ()
    """Prefixes of the program's options for each database, which users often leave out."""

    def option(self, name: str) -> OtherOption | None:
        """Returns the option with this name; sysbench also accepts underscores in names."""
        return next((one for one in self.options if {name, name.replace("_", "-")} & set(one.names)), None)

    def setting(self, name: str) -> OtherOption | None:
        """Returns the option with this name, written without dashes, without `vuset` and `diset`, and without the
        prefix of a database: `threads`, `vu` or `count_ware`."""
        bare = name.lstrip("-").replace("-", "_")
        for option in self.options:
            for known in option.names:
                plain = known.lstrip("-").replace("-", "_").rpartition(" ")[2]
                if len(bare) > 1 and bare in (plain, *(plain.removeprefix(one) for one in self.prefixes)):
                    return option
        return None


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
            tuple(program.get("prefixes", ())),
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
    equivalents = [
        option.words(given[name] or option.value)
        for name, option in options.items()
        if option.equivalent and not option.equivalent.startswith("--dsn")
    ]
    equivalents += _dsn(options, given)
    equivalents += [f"{program.workload} --with test={word}" for word in words if word in program.tests]
    parts = [f"instead, use {_command(equivalents, program, command)}"] if equivalents else []
    shown = (option.remark for option in options.values() if option.remark_in_hint or not option.equivalent)
    for remark in dict.fromkeys(shown):
        named = ", ".join(name for name, option in options.items() if option.remark == remark)
        parts.append(f"{named}: {remark}" if len(given) > 1 else remark)
    kind = "is an option" if len(given) == 1 else "are options"
    return f"{', '.join(given)} {kind} of {' and '.join(owners)}; {'; '.join(parts)}"


def refuse(workload: str, files: Sequence[str], options: Sequence[str], engine: str) -> None:
    """Raises InputError with a hint if arguments of `ironbench run` are words of another program: the workload, words
    after a workload that accepts no scripts, names of workload options (`options`: NAME=VALUE), or the engine."""
    from ironbench import engines, workloads

    found = workloads.find(workload)
    if found is None:
        suggested = _workload(workload)
        if hint := f"write {suggested}" if suggested else _translate_words([workload], workload):
            raise InputError(f"workload {workload}", "there is no such workload", hint)
        return
    if workload != "script" and files and (suggested := _translate_words(files, workload)):
        raise InputError(files[0], f"unexpected argument after the workload {workload}", suggested)
    known = {one.name for one in found.options}
    for text in options:
        name, equals, value = text.partition("=")
        if name.replace("-", "_") in known or name in known:
            continue
        if not equals and (suggested := _translate_words([text], workload)):
            raise InputError("--with", f"{text!r} is not KEY=VALUE", suggested)
        for program in sorted(programs(), key=lambda one: one.workload != workload):
            if (option := program.setting(name)) and option.suits(known):
                raise InputError(
                    f"--with {name}",
                    f"is not an option of {workload}",
                    f"{name} is an option of {program.name}; {_instead(option, value)}",
                )
    if engine and engine not in engines.names():
        named = [one for program in programs() for option in program.options for one in option.values.items()]
        for other, ours in named:
            if engine.lower() == other.lower() and ours in engines.names():
                raise InputError(f"engine {engine}", "there is no such engine", f"write --engine {ours}")


def command_hint(words: Sequence[str]) -> str:
    """Returns a hint if the words after `ironbench`, which begin with an unknown command, are those of another program.
    Otherwise, returns an empty text."""
    plain = [word for word in words if not word.startswith("-")]
    translation = _translate_words(plain)
    return translation or (f"write ironbench run {suggested}" if (suggested := _workload(plain[0])) else "")


def workload_option(words: Sequence[str], unknown: str) -> str:
    """Returns a hint if an unknown option of `ironbench run` is an option of the workload that the words name, or an
    option of another program with different dashes. Otherwise, returns an empty text."""
    from ironbench import workloads

    name = unknown.lstrip("-").replace("-", "_")
    value = next((one.partition("=")[2] for one in words if one.startswith(f"{unknown}=")), "")
    value = value or next((after for one, after in pairwise([*words, ""]) if one == unknown and after[:1] != "-"), "")
    workload = next((found for word in words[1:] if (found := workloads.find(word))), None)
    options = {} if workload is None else {one.name: one for one in workload.options}
    if near := next((one for one in (name, f"{name}s") if one in options), ""):
        return f"use --with {near}={shlex.quote(shortened(value, _LONGEST)) if value else 'VALUE'}"
    for program in programs():
        if option := program.setting(name):
            other = f"ironbench run {program.workload} " if workload and not option.suits(options) else ""
            return f"{name} is an option of {program.name}; {_instead(option, value, other)}"
    return ""


def _instead(option: OtherOption, value: str, command: str = "") -> str:
    """Returns the second part of a hint. `command`: text before the equivalent options."""
    if not option.equivalent:
        return option.remark
    if not option.equivalent.startswith("-"):
        command = "ironbench run "
    return f"instead, use {command}{option.words(value or option.value)}"


def _workload(name: str) -> str:
    """Returns the workload of ironbench for a name that another program uses: a test, the file of a test, a benchmark,
    or the program itself. Returns an empty text if there is none."""
    for program in programs():
        if (test := PurePath(name).stem) in program.tests:
            return f"{program.workload} --with test={test}"
        if name.lower() == program.name.lower():
            return program.workload
        for option in program.options:
            for other, ours in option.values.items():
                if option.equivalent == "{}" and name.lower() == other.lower():
                    return ours
    return ""


def _translate_words(words: Sequence[str], workload: str = "") -> str:
    """Translates the first of several words without dashes, such as `vuset vu 4` or `oltp_read_write run`. Returns an
    empty text if the word is unknown.

    `workload`: the workload on the command line. If it is empty, or a different workload has the suggested workload
    option, the hint suggests a whole command.
    """
    if words[0] == "diset":
        words = words[2:]
    one, two, value = [*words, "", "", ""][:3]
    for program in programs():
        other = "" if workload == program.workload else f"ironbench run {program.workload} "
        if one in program.tests:
            return f"{one} is a test of {program.name}; instead, use {other}--with test={one}"
        for name, following in ((f"{one} {two}", value), (one, two)):
            if not name.startswith("-") and (option := program.option(name)):
                kind = "an option" if name.startswith(program.prefixes) else "a command"
                command = other if option.equivalent.startswith("--with ") or not workload else ""
                return f"{name} is {kind} of {program.name}; {_instead(option, following, command)}"
    return ""


def _dsn(options: Mapping[str, OtherOption], given: Mapping[str, str]) -> list[str]:
    """Returns the `--dsn` option that replaces the other program's options for the address, with their values. The
    password is never part of it."""
    templates = {
        name: shlex.split(one.equivalent)[1] for name, one in options.items() if one.equivalent.startswith("--dsn")
    }
    if not templates:
        return []
    address = max(templates.values(), key=lambda one: ("socket=" in one, ":PORT" in one)).removesuffix(f"?{_TLS}")
    if any(one.endswith(_TLS) and given[name] != "off" for name, one in templates.items()):
        address += f"{'&' if '?' in address else '?'}{_TLS}"
    values = {name.replace("_", "-").rpartition("-")[2]: value for name, value in given.items()}
    known = {
        placeholder: quote(value, safe="/:" if placeholder == "FILE" else "")
        for placeholder, words in _ADDRESS_OPTIONS.items()
        if (value := next((values[word] for word in words if values.get(word)), ""))
    }
    if "HOST" in known and "PORT" not in known:
        address = address.replace(":PORT", "")
    address = re.sub("|".join(_ADDRESS_OPTIONS), lambda found: known.get(found[0], found[0]), address)
    return [f"--dsn {shlex.quote(address)}"]


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
