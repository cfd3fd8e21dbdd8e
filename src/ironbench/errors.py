"""The one family of errors: each names its subject, the cause and a way out.

Exit codes are those of the command line contract: 2 for the user's input, 1 for a failure while working, 3 for a run
that finished but is suspect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from ironbench.model.note import Note, note
from ironbench.model.redact import redacted_sql
from ironbench.model.secrets import hidden

T = TypeVar("T")
_LONGEST = 1 << 16
"""Characters of a message: a server may answer with megabytes. A password that this cuts is still hidden."""


class IronbenchError(Exception):
    """`subject: cause` and, on a line of its own, `hint`: the way out."""

    exit_code = 1
    code = "error"
    """Of the note that records it as the cause of a trial: what is decided by the kind of an error is decided by it."""
    sqlstate = ""
    """The database server's five-character code, when the error is a server's."""
    number = 0
    """The server's own number of the error, where it has one besides the code."""

    def __init__(self, subject: str, cause: str, hint: str = "") -> None:
        # A server may repeat in its answer what it was sent, and a message quotes files that hold passwords.
        subject, cause, hint = (redacted_sql(hidden(text[:_LONGEST])) for text in (subject, cause, hint))
        super().__init__(subject, cause, hint)
        self.subject = subject
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.subject}: {self.cause}"

    @property
    def note(self) -> Note:
        """The error as the cause of a trial."""
        return note(self.code, error=str(self))


class InputError(IronbenchError):
    """Something the user wrote cannot be used. Raised before anything is started."""

    exit_code = 2


class MistakesError(InputError):
    """Several mistakes of one input, so that they can be mended at once."""

    def __init__(self, mistakes: Sequence[InputError]) -> None:
        lines = [f"\n  - {one}" + (f" ({one.hint})" if one.hint else "") for one in mistakes]
        super().__init__(f"{len(mistakes)} mistakes", "".join(lines))
        self.mistakes = tuple(mistakes)


def collected(checks: Iterable[Callable[[], T]]) -> list[T]:
    """What every check returns. InputError: the mistake that one of them found, or the first of each subject."""
    values: list[T] = []
    mistakes: dict[str, InputError] = {}
    for check in checks:
        try:
            values.append(check())
        except InputError as error:
            for one in each(error):
                mistakes.setdefault(one.subject, one)
    if mistakes:
        raise together(list(mistakes.values()))
    return values


def each(error: InputError) -> tuple[InputError, ...]:
    """The mistakes that it names."""
    return error.mistakes if isinstance(error, MistakesError) else (error,)


def together(mistakes: Sequence[InputError]) -> InputError:
    """One error of one mistake or several."""
    return MistakesError(mistakes) if len(mistakes) > 1 else mistakes[0]


class FailureError(IronbenchError):
    """Something broke while working: a server died, a disk filled, a connection was refused."""


class ProgramError(FailureError):
    """A program ended with a failure."""

    said = ""
    """What it wrote on its standard error, or else on its standard output."""


class UnwrittenError(FailureError):
    """A result could not be written: there is no use in measuring on."""


class EngineDiedError(FailureError):
    """The engine's process ended in the middle of a trial, which is voided by that."""


_IN_A_FILE: ContextVar[bool] = ContextVar("in_a_file", default=False)
_TABLES = ("system.set", "workload.with", "workload.define")
"""Fields whose keys are the user's own."""


@contextmanager
def in_a_file() -> Iterator[None]:
    """While this lasts, messages name the fields of a lab file; otherwise the options of the command line."""
    token = _IN_A_FILE.set(True)
    try:
        yield
    finally:
        _IN_A_FILE.reset(token)


def written(field: str, value: object = "") -> str:
    """A field as the user wrote it: `--memory 1GB` at the command line, `system.memory = 1GB` in a lab file.

    Of a table `value` is a key, with or without its value: `--set work_mem=1GB`, `system.set.work_mem=1GB`.
    """
    if _IN_A_FILE.get():
        between = "." if field in _TABLES else " = "
        return f"{field}{between}{value}" if value != "" else field
    option = "-D" if field == "workload.define" else "--" + field.rpartition(".")[2].replace("_", "-")
    return f"{option} {value}" if value != "" else option


def quoted(text: str, longest: int = 80) -> str:
    """As a message quotes it: in quotes, without control characters, shortened in the middle."""
    return repr(shortened(text, longest))


def shortened(text: str, longest: int = 200) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]} … {text[-longest // 4 :]}"


def similar(name: str, known: Iterable[str]) -> str:
    """A hint that names the known names most like `name`; empty when none is like it."""
    import difflib

    close = difflib.get_close_matches(name, sorted(set(known)), n=2, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else ""


def nearest(name: str, known: list[str], closest_first: bool = False) -> str:
    """A hint that names the known names most like `name`, or all of them when none is like it: by the alphabet, or
    those first that are most like it."""
    import difflib

    if hint := similar(name, known):
        return hint
    known = sorted(set(known))
    if closest_first:
        known.sort(key=lambda one: -difflib.SequenceMatcher(None, name, one).ratio())
    return f"known: {', '.join(known)}"
