"""What must be alive while rooms work with it: a running engine, seen through a small protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

Row = tuple[str | None, ...]


class WorkConnection(Protocol):
    """A connection of its own to an engine, for work in parallel and for statements that are timed one by one."""

    def measure(self, sql: str) -> tuple[int, float, float]:
        """Rows, and when the statement was submitted and the last of its answer came, as `time.perf_counter`.

        No row is handed over, so that the size of an answer costs nothing before the next statement. FailureError,
        with SQLSTATE 57014 when it was cancelled.
        """
        ...

    def query(self, sql: str) -> list[Row]:
        """As `Session.query`."""
        ...

    def columns(self) -> list[str]:
        """Column names of the last query."""
        ...

    def copy_in(self, sql: str, data: bytes) -> int:
        """As `Session.copy_in`."""
        ...

    def cancel(self) -> None:
        """From another thread: what runs ends soon."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Eager(WorkConnection, Protocol):
    """A line whose other end, a process of ours, begins the next statement by itself: no wake-up lies between."""

    def measure_before(self, sql: str, following: str) -> tuple[int, float, float]:
        """As `measure`. `following` begins when `sql` has ended, well or not, and is what is to be measured next.

        When something else is asked for, or the line is closed, it is cancelled and its answer let go.
        """
        ...


class Session(Protocol):
    """A running engine. Made by `engines`, used by `load`, `drive`, `observe` and workloads."""

    engine: str
    """The name of the engine."""

    def query(self, sql: str) -> list[Row]:
        """Runs one or more statements; the rows of the last, each value as text or None. FailureError."""
        ...

    def copy_in(self, sql: str, data: bytes) -> int:
        """Runs a COPY … FROM STDIN with `data`; rows copied."""
        ...

    def line(self, cpus: Sequence[int] = ()) -> WorkConnection:
        """A connection of its own, which the caller closes. `cpus`: where an engine that is a library works with it."""
        ...

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        """The `engine` part of a drive plan: how the core reaches this engine (holds the password, if any)."""
        ...

    def facts(self) -> dict[str, Any]:
        """Version, every setting with its source, configure flags, paths: JSON-able, without secrets."""
        ...

    def counters(self) -> dict[str, int]:
        """Monotone counters, e.g. `commits`, `rollbacks`."""
        ...

    def processes(self) -> Sequence[int]:
        """Process ids of the engine, empty when it is not ours or out of sight; for the CPU budget."""
        ...

    def directories(self) -> dict[str, str]:
        """Role (`data`, `temp`, `log`) → directory, for those that are on this machine."""
        ...

    def within(self) -> Sequence[str]:
        """Put before a command, it works under the limits of this engine; empty where the engine is a server."""
        ...

    def alive(self) -> bool: ...

    def last_words(self) -> str:
        """How the engine ended and what it complained of; empty where that is not known, as on somebody's server."""
        ...

    def restart(self) -> None:
        """Ends the engine and starts it again, its caches empty. FailureError; not for a server that is not ours."""
        ...

    def stop(self) -> None:
        """Ends it and removes what was made for it. May be called twice."""
        ...


@runtime_checkable
class Restarted(Protocol):
    """A session whose server may be restarted by others than ironbench's own hand."""

    def restarted(self, restart: Callable[[], None]) -> None:
        """Lets go of the server, calls `restart`, and connects when the server answers again. FailureError: it does
        not."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A session whose engine is a process that may stop answering without ending."""

    def limited(self, limit_s: float) -> AbstractContextManager[None]:
        """Limits the time of each statement of this thread. FailureError on exit: one was not answered, whatever
        became of its own error."""
        ...

    def require_answer(self) -> None:
        """FailureError: the engine does not answer."""
        ...


class Freezes(Protocol):
    """Stops a server with everything below it where it stands, and lets it go on."""

    @property
    def how(self) -> str:
        """In words, for a record."""
        ...

    def freeze(self) -> None:
        """Returns when nothing of it runs. FailureError."""
        ...

    def thaw(self) -> None:
        """Returns when it goes on. FailureError."""
        ...


@runtime_checkable
class Freezable(Protocol):
    """A session whose server may be frozen between two turns."""

    def freezer(self) -> Freezes | None:
        """None: the server is not ours."""
        ...


@runtime_checkable
class Committing(Protocol):
    """A session that counts the transactions that its server has committed for it."""

    @property
    def commits(self) -> int:
        """Since it began, over all of its connections."""
        ...


@runtime_checkable
class DirectorySession(Protocol):
    """A session whose engine keeps entries (ability `directory`); its statements are operations of LDAP."""

    @property
    def base(self) -> str:
        """DN below which our entries are; it completes a DN that ends with a comma."""
        ...

    @property
    def is_own(self) -> bool:
        """Whether ironbench started the server, so that nobody else works with it."""
        ...

    def fill(self, pieces: Iterable[bytes], changes: Iterable[bytes] = ()) -> None:
        """Loads an LDIF: on a server of ours in place of all entries, elsewhere it is added. Then carries out the
        records of `changes`, one operation each. FailureError."""
        ...

    def count(self, search: str, among: int = 0) -> int:
        """How many entries a search finds. `among`: estimated number of entries that the server looks at, which
        lengthens the time limit. FailureError."""
        ...


@runtime_checkable
class Powered(Protocol):
    """A session whose machine can lose its power in the midst of things."""

    def lose_power(self, cut: Callable[[], None], restore: Callable[[], None]) -> None:
        """Calls `cut` while the engine runs, ends the engine without a last word, calls `restore` when nothing of it
        uses its files any more, and starts it again on what is left. FailureError: it does not start."""
        ...
