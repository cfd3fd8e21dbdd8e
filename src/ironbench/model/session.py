"""Protocols for access to a running engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

Row = tuple[str | None, ...]


class WorkConnection(Protocol):
    """A separate connection to an engine, for parallel work and for statements that are timed individually."""

    def measure(self, sql: str) -> tuple[int, float, float]:
        """Runs a statement; returns the number of rows, the time of sending it and the time of the last part of its
        answer.

        Times are those of `time.perf_counter`. Rows are not converted, so that the size of an answer does not delay the
        next statement. Raises FailureError, with SQLSTATE 57014 if the statement was cancelled.
        """
        ...

    def query(self, sql: str) -> list[Row]:
        """Runs statements like `Session.query`."""
        ...

    def columns(self) -> list[str]:
        """Returns the column names of the last query."""
        ...

    def copy_in(self, sql: str, data: bytes) -> int:
        """Copies data like `Session.copy_in`."""
        ...

    def cancel(self) -> None:
        """Cancels the running statement; called from another thread."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class PipelinedConnection(WorkConnection, Protocol):
    """A connection through a child process, which starts the next statement without waiting for this process to wake
    up."""

    def measure_before(self, sql: str, following: str) -> tuple[int, float, float]:
        """Measures `sql` like `measure`; `following` starts as soon as `sql` has ended or failed, and is the next to be
        measured.

        If the next call is a different one, or the connection is closed, `following` is cancelled and its answer
        discarded.
        """
        ...


class Session(Protocol):
    """A running engine. `engines` makes sessions; `load`, `drive`, `observe` and workloads use them."""

    engine: str
    """Name of the engine."""

    def query(self, sql: str) -> list[Row]:
        """Runs one or more statements; returns the rows of the last one, each value as text or None. Raises
        FailureError."""
        ...

    def copy_in(self, sql: str, data: bytes) -> int:
        """Runs a COPY … FROM STDIN with `data`; returns the number of rows copied."""
        ...

    def line(self, cpus: Sequence[int] = ()) -> WorkConnection:
        """Opens a separate connection for work, which the caller closes. `cpus`: the CPUs for its work, if the engine
        is a library."""
        ...

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        """Returns the `engine` part of a drive plan: how the core connects to this engine, including the password, if
        any."""
        ...

    def facts(self) -> dict[str, Any]:
        """Returns version, every setting with its source, configure flags and paths, JSON-serialisable and without
        secrets."""
        ...

    def counters(self) -> dict[str, int]:
        """Returns monotonic counters, e.g. `commits`, `rollbacks`."""
        ...

    def processes(self) -> Sequence[int]:
        """Returns the process ids of the engine for the breakdown of CPU time; empty if they are not visible."""
        ...

    def directories(self) -> dict[str, str]:
        """Returns role (`data`, `temp`, `log`) → directory, for directories on this machine."""
        ...

    def within(self) -> Sequence[str]:
        """Returns a prefix that runs a command under the resource limits of this engine; empty if the engine is a
        server."""
        ...

    def alive(self) -> bool: ...

    def last_words(self) -> str:
        """Returns how the engine ended and its last error messages; empty if unknown, as for a third-party server."""
        ...

    def restart(self) -> None:
        """Stops the engine and starts it again with empty caches. Must not be called for servers that ironbench did not
        start. Raises FailureError."""
        ...

    def stop(self) -> None:
        """Stops the engine and removes what was created for it. May be called twice."""
        ...


@runtime_checkable
class RestartableSession(Protocol):
    """A session whose server may also be restarted from outside ironbench."""

    def restarted(self, restart: Callable[[], None]) -> None:
        """Disconnects, calls `restart`, and reconnects as soon as the server answers again. Raises FailureError if it
        does not."""
        ...


@runtime_checkable
class RemoteSession(Protocol):
    """A session whose engine is a separate process, which may hang without ending."""

    def limited(self, limit_s: float) -> AbstractContextManager[None]:
        """Limits the time of each statement of this thread. Raises FailureError on exit if a statement was not answered
        in time, even if the caller has handled the statement's own error."""
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
        """File with the counters of the running relay; empty without one."""
        ...

    def delayed(self, latency_s: float, cpus: Sequence[int]) -> AbstractContextManager[None]:
        """Adds this round-trip time to the connections that `target` and `line` describe or open meanwhile; other
        connections stay direct. `cpus`: CPUs of the relay. Raises FailureError, on exit also if the relay has died."""
        ...


class ServerPause(Protocol):
    """Pauses a server with all its child processes, and resumes it."""

    @property
    def how(self) -> str:
        """The method, in words for a record."""
        ...

    def freeze(self) -> None:
        """Pauses the server; returns when all its processes have stopped. Raises FailureError."""
        ...

    def thaw(self) -> None:
        """Resumes the server; returns when it runs again. Raises FailureError."""
        ...


@runtime_checkable
class PausableSession(Protocol):
    """A session whose server may be paused between two slices."""

    def freezer(self) -> ServerPause | None:
        """Returns the control to pause the server; None if ironbench did not start it."""
        ...


@runtime_checkable
class CommitCounter(Protocol):
    """A session that counts the transactions its server has committed for it."""

    @property
    def commits(self) -> int:
        """Commits since the session began, over all its connections."""
        ...


@runtime_checkable
class DirectorySession(Protocol):
    """A session of an LDAP directory server (ability `directory`); its statements are LDAP operations."""

    @property
    def base(self) -> str:
        """DN below which ironbench keeps its entries; it is appended to a DN that ends with a comma."""
        ...

    @property
    def is_own(self) -> bool:
        """Whether ironbench started the server, so that no other client uses it."""
        ...

    def fill(self, pieces: Iterable[bytes], changes: Iterable[bytes] = ()) -> None:
        """Loads an LDIF file, then applies the change records in `changes` one by one. Raises FailureError.

        On a server that ironbench started, the file replaces all entries; elsewhere it is added to them.
        """
        ...

    def count(self, search: str, among: int = 0) -> int:
        """Returns how many entries a search matches. `among`: estimated number of entries that the server must examine,
        which extends the time limit. Raises FailureError."""
        ...


@runtime_checkable
class PowerCutSession(Protocol):
    """A session whose machine can simulate a power cut."""

    def lose_power(self, cut: Callable[[], None], restore: Callable[[], None]) -> None:
        """Calls `cut` while the engine runs, kills the engine, calls `restore` once no process uses its files, and
        starts the engine again on what is left. Raises FailureError if it does not start."""
        ...
