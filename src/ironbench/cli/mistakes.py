"""Mistakes on the command line, in the form of all our errors: subject, cause, way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ironbench.errors import InputError

_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")
_COMMAND = re.compile(r"No such command '(.*?)'")


def whole(option: str, low: int, high: int | None = None, hint: str = "") -> Callable[[Any], int]:
    """A reader of whole numbers within bounds, for an option's `parser`."""
    bounds = f"{low} or more" if high is None else f"{low} to {high}"

    def read(text: Any) -> int:
        try:
            number = int(text)
        except ValueError:
            cause = f"{text!r} is not a whole number"
            raise InputError(option, cause, f"write for example {option} {max(low, 1)}") from None
        if number < low or (high is not None and number > high):
            raise InputError(option, f"{number} is out of range", f"{bounds} is possible{hint and f': {hint}'}")
        return number

    return read


def number(option: str, hint: str) -> Callable[[Any], float]:
    """A reader of numbers, for an option's `parser`."""

    def read(text: Any) -> float:
        try:
            return float(text)
        except ValueError:
            raise InputError(option, f"{text!r} is not a number", hint) from None

    return read


def or_search(option: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What `read` reads; text that asks for a search stays as it is."""
    return lambda text: text if str(text).startswith("auto") else read(text)


def refuse_repeated(words: Sequence[str], command: Any) -> None:
    """InputError for an option with one value that is given twice: the parser would take the last without a word."""
    options = [word.partition("=")[0] for word in words[: words.index("--") if "--" in words else None]]
    twice = {option for option in options if option.startswith("--") and options.count(option) > 1}
    if not twice:
        return
    command = command()
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    for parameter in command.params:
        for option in twice.intersection(parameter.opts):
            if not parameter.multiple:
                example = f"write {option} 1,2,4 for several" if option == "--clients" else "keep one of them"
                raise InputError(option, f"is given {options.count(option)} times", example)


def mistake(error: Any) -> InputError | None:
    """What the parser found wrong, as an error of ours; None for an exception that is not the parser's."""
    said = getattr(error, "format_message", None)
    if said is None:
        return None
    context = getattr(error, "ctx", None)
    verb = context.command_path if context else "ironbench"
    see = f"see `{verb} --help`"
    kind = type(error).__name__
    if kind == "NoSuchOption":
        return InputError(error.option_name, f"{verb} has no such option", _meant(error.possibilities) or see)
    if kind == "BadOptionUsage":
        return InputError(error.option_name, "takes no value" if "not take" in str(said()) else "takes a value", see)
    if kind == "MissingParameter":
        return InputError(verb, f"{_name(error)} is missing", f"`{verb} --help` says what it is")
    if kind == "BadParameter":
        return InputError(_name(error), _lower(error.message), see)
    return _usage(verb, str(said()), context)


def _usage(verb: str, said: str, context: Any) -> InputError:
    import difflib

    see = f"see `{verb} --help`"
    command, extra = _COMMAND.search(said), _EXTRA.search(said)
    if command:
        near = difflib.get_close_matches(command[1], list(context.command.commands), n=2)
        return InputError(command[1], f"{verb} has no such verb", _meant(near) or see)
    if extra:
        return InputError(extra[1], f"{verb} does not expect it", see)
    return InputError(verb, _lower(said).rstrip("."), see)


def _name(error: Any) -> str:
    """The option as written, or the argument in capitals as the help page shows it."""
    parameter = error.param
    if parameter is None:
        return "an argument"
    return str(parameter.name).upper() if parameter.param_type_name == "argument" else str(parameter.opts[0])


def _meant(names: Any) -> str:
    return f"did you mean {' or '.join(names)}?" if names else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
