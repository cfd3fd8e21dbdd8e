"""Converts mistakes on the command line to errors with subject, cause and hint."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from ironbench.errors import FailureError, InputError, IronbenchError, shortened
from ironbench.model.redact import redacted
from ironbench.model.secrets import HIDDEN, hidden
from ironbench.ranges import Range
from ironbench.words import clean

_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")
_COMMAND = re.compile(r"No such command '(.*?)'")

_ELSEWHERE = {"replay": "to replay a capture, write ironbench run capture --with file=FILE"}
"""Commands that users expect, with hints at the commands that exist."""
_REMOVED = {
    ("ironbench device trace replay", "--keep-arrivals"): (
        "no longer exists: a replay always uses the recorded arrival times",
        "remove --keep-arrivals",
    ),
    ("ironbench device trace replay", "--emulated"): (
        "no longer exists: a replay predicts the latencies of the device, but no computing time",
        "remove --emulated; to include computing time, run the program on the emulated device",
    ),
}
"""Options that earlier versions had. The key is the command and the option; the value is the cause and the hint of the
error."""


def whole(option: str, known: Range) -> Callable[[Any], int]:
    """Returns a parser for whole numbers in a range."""
    return lambda text: int(known.read(option, text))


def number(option: str, known: Range) -> Callable[[Any], float]:
    """Returns a parser for numbers in a range."""
    return lambda text: known.read(option, text)


def refuse_repeated(words: Sequence[str], command: Any) -> None:
    """Raises InputError if an option that takes one value is given twice. The parser would silently use the last
    value."""
    options = [word.partition("=")[0] for word in words[: words.index("--") if "--" in words else None]]
    twice = {option for option in options if option.startswith("-") and options.count(option) > 1}
    if not twice:
        return
    for parameter in _parameters(words, command()):
        for option in twice.intersection(parameter.opts):
            if not parameter.multiple:
                example = f"write {option} 1,2,4 for several values" if option == "--clients" else "use the option once"
                raise InputError(option, f"appears {options.count(option)} times", example)


def refuse_empty(words: Sequence[str], command: Any) -> None:
    """Raises InputError if an option has an empty value, e.g. from an unset shell variable. Otherwise, the command
    would ignore the option and do something that the user did not request."""
    given = words[: words.index("--") if "--" in words else None]
    empty = {word.removesuffix("=") for word in given if word.startswith("-") and word.find("=") == len(word) - 1}
    empty |= {word for word, value in pairwise(given) if word.startswith("-") and not value}
    if not empty:
        return
    for parameter in _parameters(given, command()):
        for option in empty.intersection(parameter.opts):
            if not getattr(parameter, "is_flag", False):
                hint = f"remove {option}, or add a value; the value of an unset shell variable is empty"
                raise InputError(option, "is empty", hint)


def _parameters(words: Sequence[str], command: Any) -> Sequence[Any]:
    """Returns the parameters of the command that the words of a command line name."""
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    parameters: Sequence[Any] = command.params
    return parameters


def forbidden(error: OSError) -> InputError | None:
    """Converts a PermissionError to an InputError. This function serves all commands, because many functions of pathlib
    may raise PermissionError. Others return False if a permission is missing (since Python 3.14, `exists` and `is_dir`
    always do).
    """
    if error.errno != errno.EACCES or not error.filename:
        return None
    path = Path(os.fsdecode(error.filename)).absolute()
    closed = next((one for one in reversed(path.parents) if not os.access(one, os.X_OK)), None)
    cause = f"no permission to enter the directory {closed}" if closed else "permission denied"
    return InputError(str(path), cause, f"use another path, or change the permissions of {closed or path}")


def refuse_unprintable(words: Sequence[str]) -> None:
    """Raises InputError if an argument has control characters or bytes that are not UTF-8."""
    for word in words:
        option = word.partition("=")[0] if word.startswith("-") else "argument"
        for char in word:
            code = ord(char)
            if (code < 32 and char not in "\t\n") or 0x7F <= code <= 0x9F:
                raise InputError(clean(option), f"contains the control character U+{code:04X}", "remove the character")
            if 0xD800 <= code <= 0xDFFF:
                raise InputError(clean(option), "is not valid UTF-8", "encode it in UTF-8")


def unforeseen(error: Exception) -> IronbenchError:
    """Converts any other exception to a one-line error. Details are written to a file, without passwords."""
    if isinstance(error, OSError) and error.filename:
        return InputError(
            str(error.filename), error.strerror or str(error), "use another path, or change its permissions"
        )
    import tempfile
    import traceback

    from ironbench.host.scratch import FAILURE

    def clean_of_secrets(text: str) -> str:
        for piece in addresses:
            text = text.replace(piece, HIDDEN)
        return hidden(redacted(text))

    words = sys.argv[1:]
    # A malformed DSN may contain the password anywhere, so all its words are hidden.
    addresses = [word for last, word in pairwise(["", *words]) if last == "--dsn" or word.startswith("--dsn=")]
    addresses += [piece for word in addresses for piece in re.split(r"\W+", word) if len(piece) > 3 and piece != "dsn"]
    text = "".join(traceback.format_exception(error))
    details = clean_of_secrets(f"ironbench {' '.join(words)}\n\n{text}")
    place = ""
    with suppress(OSError):
        with tempfile.NamedTemporaryFile(
            "w", prefix=FAILURE, suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(details)
        place = file.name
    cause = f"internal error: {type(error).__name__}: {shortened(clean_of_secrets(str(error)))}"
    return FailureError("ironbench", cause, f"please report this error with the details in {place}" if place else "")


def mistake(error: Any) -> InputError | None:
    """Converts an exception of the command line parser to an InputError. Returns None for any other exception."""
    message = getattr(error, "format_message", None)
    if message is None:
        return None
    context = getattr(error, "ctx", None)
    verb = context.command_path if context else "ironbench"
    see = f"see `{verb} --help`"
    kind = type(error).__name__
    if kind == "NoSuchOption":
        if removed := _REMOVED.get((verb, error.option_name)):
            return InputError(error.option_name, *removed)
        other = _of_other_program(verb, error.option_name, context)
        return InputError(
            error.option_name, f"unknown option of {verb}", other or _suggestion(error.possibilities) or see
        )
    if kind == "BadOptionUsage":
        return InputError(error.option_name, "takes no value" if "not take" in str(message()) else "takes a value", see)
    if kind == "MissingParameter":
        return InputError(verb, f"{_name(error)} is missing", see)
    if kind == "BadParameter":
        return InputError(_name(error), _lower(error.message), see)
    return _usage(verb, str(message()), context)


def _of_other_program(verb: str, option: str, context: Any) -> str:
    """Returns a hint if an unknown option of `ironbench run` is an option of another program or of the workload.
    Otherwise, returns an empty text."""
    if context is None or verb not in ("ironbench", "ironbench run"):
        return ""
    from ironbench.cli.other_programs import hint, workload_option

    known = {name: str(one.name) for one in context.command.params for name in (*one.opts, *one.secondary_opts)}
    return hint(sys.argv[1:], option, known, verb) or (workload_option(sys.argv[1:], option) if "run" in verb else "")


def _usage(verb: str, message: str, context: Any) -> InputError:
    import difflib

    see = f"see `{verb} --help`"
    command, extra = _COMMAND.search(message), _EXTRA.search(message)
    if command:
        near = difflib.get_close_matches(command[1], list(context.command.commands), n=2)
        other = (_ELSEWHERE.get(command[1]) or _command_of_other_program()) if verb == "ironbench" else ""
        return InputError(command[1], f"unknown command of {verb}", other or _suggestion(near) or see)
    if extra:
        return InputError(extra[1], f"unexpected argument of {verb}", see)
    return InputError(verb, _lower(message).rstrip("."), see)


def _command_of_other_program() -> str:
    from ironbench.cli.other_programs import command_hint

    return command_hint(sys.argv[1:])


def _name(error: Any) -> str:
    """Returns the name of an option or argument as the help page shows it. Arguments are in capitals."""
    parameter = error.param
    if parameter is None:
        return "an argument"
    return str(parameter.name).upper() if parameter.param_type_name == "argument" else str(parameter.opts[0])


def _suggestion(names: Any) -> str:
    return f"did you mean {' or '.join(names)}?" if names else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
