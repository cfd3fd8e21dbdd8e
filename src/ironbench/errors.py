"""Error classes of ironbench: each error has a subject, a cause and a hint.

Exit codes of the command line: 2 for invalid input, 1 for a failure during work, 3 for a run that finished but was
flagged.
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
"""Maximum length of a message in characters. A server may answer with megabytes. Messages are truncated before
passwords are hidden. A password that was cut off at the end is hidden as well."""


class IronbenchError(Exception):
    """An error of ironbench with subject, cause and hint, displayed as `subject: cause` with `hint` on a separate
    line."""

    exit_code = 1
    code = "error"
    """Code of the error. If the error is recorded as the cause of a trial's status, the note has this code. Decisions
    use the code, not the text."""
    sqlstate = ""
    """SQLSTATE, if the error comes from a database server."""
    number = 0
    """The server's own error number, if it has one besides the SQLSTATE."""

    def __init__(self, subject: str, cause: str, hint: str = "") -> None:
        # Messages may contain passwords: a server may repeat what was sent to it, and messages quote files.
        subject, cause, hint = (redacted_sql(hidden(text[:_LONGEST])) for text in (subject, cause, hint))
        super().__init__(subject, cause, hint)
        self.subject = subject
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.subject}: {self.cause}"

    @property
    def note(self) -> Note:
        """The error as a note, for use as the cause of a trial's status."""
        return note(self.code, error=str(self))


class InputError(IronbenchError):
    """Invalid user input. Raised before anything is started."""

    exit_code = 2


class MistakesError(InputError):
    """One input contains several mistakes. All mistakes are reported together, so that the user can correct them at
    once."""

    def __init__(self, mistakes: Sequence[InputError]) -> None:
        lines = [f"\n  - {one}" + (f" ({one.hint})" if one.hint else "") for one in mistakes]
        super().__init__(f"{len(mistakes)} mistakes", "".join(lines))
        self.mistakes = tuple(mistakes)


def collected(checks: Iterable[Callable[[], T]]) -> list[T]:
    """Runs all checks and returns their results. If checks fail, raises an error with the first mistake of each
    subject."""
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
    """Returns the mistakes that an error combines. An error with a single mistake is returned itself."""
    return error.mistakes if isinstance(error, MistakesError) else (error,)


def together(mistakes: Sequence[InputError]) -> InputError:
    """Combines one or more mistakes into one error."""
    return MistakesError(mistakes) if len(mistakes) > 1 else mistakes[0]


class FailureError(IronbenchError):
    """A failure during work. For example, a server died, a disk is full, or a connection was refused."""


class ProgramError(FailureError):
    """A program that ironbench ran has failed."""

    said = ""
    """Output of the program: standard error, or else standard output."""


class EntryRefusedError(FailureError):
    """A directory server refused an entry, or a change to it."""

    dn = ""
    change = "add"
    """The operation that the server refused: `add` for an entry, or `modify`, `delete` or `rename` for a change."""


class UnwrittenError(FailureError):
    """A result could not be written, so the results of further measurements would also be lost."""


class EngineDiedError(FailureError):
    """The engine's process ended during a trial, which makes the trial invalid."""


_IN_A_FILE: ContextVar[bool] = ContextVar("in_a_file", default=False)
_TABLES = ("system.set", "workload.with", "workload.define")
"""Fields that are tables with keys chosen by the user."""


@contextmanager
def in_a_file() -> Iterator[None]:
    """Makes messages inside the `with` block refer to fields of a lab file instead of command-line options."""
    token = _IN_A_FILE.set(True)
    try:
        yield
    finally:
        _IN_A_FILE.reset(token)


def written(field: str, value: object = "") -> str:
    """Returns a field as the user types it: `--memory 1GB` on the command line, or `system.memory = 1GB` in a lab file.

    If the field is a table (`_TABLES`), `value` is a key of the table, or a key with its value. Examples are `--set
    work_mem=1GB` and `system.set.work_mem=1GB`.
    """
    if _IN_A_FILE.get():
        between = "." if field in _TABLES else " = "
        return f"{field}{between}{value}" if value != "" else field
    option = "-D" if field == "workload.define" else "--" + field.rpartition(".")[2].replace("_", "-")
    return f"{option} {value}" if value != "" else option


def quoted(text: str, longest: int = 80) -> str:
    """Quotes a text for a message. Escapes control characters. Shortens a text that is longer than `longest` in the
    middle."""
    return repr(shortened(text, longest))


def shortened(text: str, longest: int = 200) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]} … {text[-longest // 4 :]}"


MANY_NAMES = 40
"""Maximum number of names in a hint."""


def similar(name: str, known: Iterable[str]) -> str:
    """Returns a hint with the known names that are most similar to `name`. Returns "" if none is similar."""
    import difflib

    close = difflib.get_close_matches(name, sorted(set(known)), n=2, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else ""


def nearest(name: str, known: list[str], closest_first: bool = False) -> str:
    """Returns a hint with the known names that are similar to `name`. If none is similar, the hint lists all known
    names in alphabetical order, or with the closest name first if `closest_first` is true. A hint lists at most
    `MANY_NAMES` names. If there are more, it lists the closest ones."""
    import difflib

    if hint := similar(name, known):
        return hint
    known = sorted(set(known))
    if closest_first or len(known) > MANY_NAMES:
        known.sort(key=lambda one: -difflib.SequenceMatcher(None, name, one).ratio())
    more = f" and {len(known) - MANY_NAMES} more" if len(known) > MANY_NAMES else ""
    return f"known: {', '.join(known[:MANY_NAMES])}{more}"
