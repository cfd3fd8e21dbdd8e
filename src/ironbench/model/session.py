"""Protocols for access to a running engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

Row = tuple[str | None, ...]


class WorkConnection(Protocol):
    """A separate connection to an engine, for parallel work and for statements that are timed individually."""

    def measure(self, sql: str) -> tuple[int, float, float]:
        """Runs a statement. Returns the number of rows, the time at which the statement was sent, and the time at which
        the last part of the answer arrived.

        Times are those of `time.perf_counter`. Rows are not converted, so that the size of an answer does not delay the
        next statement. Raises FailureError, with SQLSTATE 57014 if the statement was cancelled.
        """
        ...

    def query(self, sql: str) -> list[Row]:
        """Runs statements like `Session.query`, on this connection."""
        ...

    def columns(self) -> list[str]:
        """Returns the column names of the last query."""
        ...

    def copy_in(self, sql: str, data: bytes) -> int:
        """Copies data like `Session.copy_in`."""
        ...

    def cancel(self) -> None:
        """Cancels the running statement. Another thread calls this method."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class PipelinedConnection(WorkConnection, Protocol):
    """A connection through a child process. The child starts the next statement without waiting for this process to
    wake up."""

    def measure_before(self, sql: str, following: str) -> tuple[int, float, float]:
        """Measures `sql` like `measure`. The statement `following`, which must be the next statement to be measured,
        starts as soon as `sql` has ended or failed.

        If the next call is for a different statement, or the connection is closed, `following` is cancelled and its
        answer discarded.
        """
        ...


class Session(Protocol):
    """A running engine. The package `engines` creates sessions, and loading, driving, observers and workloads use
    them."""

    engine: str
    """Name of the engine."""

    def query(self, sql: str) -> list[Row]:
        """Runs one or more statements. Returns the rows of the last statement, each value as text or None. Raises
        FailureError."""
        ...

    def copy_in(self, sql: str, data: bytes) -> int:
        """Runs a COPY … FROM STDIN with `data`. Returns the number of rows copied."""
        ...

    def line(self, cpus: Sequence[int] = ()) -> WorkConnection:
        """Opens a separate connection for work. The caller closes it. `cpus`: the CPUs for the connection's work, if
        the engine is a library."""
        ...

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        """Returns the `engine` part of a drive plan. This part describes how the core connects to this engine, and
        includes the password, if any."""
        ...

    def facts(self) -> dict[str, Any]:
        """Returns facts about the engine: version, every setting with its source, configure flags and paths. The facts
        are JSON-serialisable and contain no secrets."""
        ...

    def counters(self) -> dict[str, int]:
        """Returns monotonic counters, e.g. `commits`, `rollbacks`."""
        ...

    def processes(self) -> Sequence[int]:
        """Returns the engine's process ids for the breakdown of CPU time. Returns an empty list if the processes are
        not visible."""
        ...

    def directories(self) -> dict[str, str]:
        """Returns the directory of each role (`data`, `temp`, `log`) whose directory is on this machine."""
        ...

    def within(self) -> Sequence[str]:
        """Returns the words to put in front of a command, so that the command runs under the resource limits of this
        engine. Returns nothing if the engine is a server."""
        ...

    def alive(self) -> bool: ...

    def last_words(self) -> str:
        """Returns how the engine ended and its last error messages. Returns an empty text if they are unknown, for
        example for an existing server."""
        ...

    def restart(self) -> None:
        """Stops the engine and starts it again with empty caches. Must not be called for servers that ironbench did not
        start. Raises FailureError."""
        ...

    def stop(self) -> None:
        """Stops the engine and removes what was created for it. A second call has no effect."""
        ...


@runtime_checkable
class RestartableSession(Protocol):
    """A session whose server may also be restarted from outside ironbench."""

    def restarted(self, restart: Callable[[], None]) -> None:
        """Disconnects, calls `restart`, and reconnects as soon as the server answers again. Raises FailureError if the
        server does not answer."""
        ...


@runtime_checkable
class RemoteSession(Protocol):
    """A session whose engine is a separate process, which may hang without ending."""

    def limited(self, limit_s: float) -> AbstractContextManager[None]:
        """Limits the time of each statement that this thread runs. Raises FailureError on exit if a statement was not
        answered in time, even if the caller has handled the statement's own error."""
        ...

    def require_answer(self) -> None:
        """Raises FailureError if the engine does not answer."""
        ...


@runtime_checkable
class DelayedSession(Protocol):
    """A session whose clients can be separated from the server by a relay that adds latency."""

    @property
    def on_socket(self) -> bool:
        """Whether the server is reached through a Unix socket."""
        ...

    @property
    def relay_counters(self) -> str:
        """File with the counters of the relay. Empty if no relay is running."""
        ...

    def delayed(self, latency_s: float, cpus: Sequence[int]) -> AbstractContextManager[None]:
        """Delays connections inside the `with` block by this round-trip time. The delay applies to connections that
        `target` describes or `line` opens, and to no others. `cpus`: CPUs of the relay. Raises FailureError if the
        relay cannot be started, or, on exit, if it has died."""
        ...


class ServerPause(Protocol):
    """Pauses a server with all its child processes, and resumes it."""

    @property
    def how(self) -> str:
        """The method by which the server is paused, in words for a record."""
        ...

    def freeze(self) -> None:
        """Pauses the server. Returns when all its processes have stopped. Raises FailureError."""
        ...

    def thaw(self) -> None:
        """Resumes the server. Returns when it runs again. Raises FailureError."""
        ...


@runtime_checkable
class PausableSession(Protocol):
    """A session whose server may be paused between two slices."""

    def freezer(self) -> ServerPause | None:
        """Returns an object that pauses the server. Returns None if ironbench did not start the server."""
        ...


@runtime_checkable
class CommitCounter(Protocol):
    """A session that can tell how many transactions its connections have committed."""

    @property
    def commits(self) -> int:
        """Number of commits since the session began, over all connections of the session."""
        ...


@runtime_checkable
class DirectorySession(Protocol):
    """A session with an LDAP directory server (ability `directory`), whose statements are LDAP operations."""

    @property
    def base(self) -> str:
        """DN below which ironbench stores its entries. Statements may contain a DN that ends with a comma. This base DN
        is then appended to it."""
        ...

    @property
    def is_own(self) -> bool:
        """Whether ironbench started the server, so that no other client uses it."""
        ...

    def fill(self, pieces: Iterable[bytes], changes: Iterable[bytes] = ()) -> None:
        """Loads an LDIF file, then applies the change records in `changes` one by one. Raises FailureError.

        On a server that ironbench started, the file replaces all entries; on other servers the file's entries are
        added.
        """
        ...

    def count(self, search: str, among: int = 0) -> int:
        """Returns how many entries a search matches. `among`: estimated number of entries that the server must examine;
        a larger number extends the time limit. Raises FailureError."""
        ...


@runtime_checkable
class PowerCutSession(Protocol):
    """A session whose machine can simulate a power cut."""

    def lose_power(self, cut: Callable[[], None], restore: Callable[[], None]) -> None:
        """Simulates a power cut. Calls `cut` while the engine runs, and then kills the engine. Once no process uses the
        engine's files, calls `restore` and starts the engine again with the files that are left. Raises FailureError if
        the engine does not start."""
        ...
