"""What must be alive between the stages: a running engine, seen through a small protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[str | None, ...]


class Session(Protocol):
    """A running engine. Made by `engines`, used by `load`, `drive`, `observe` and workloads."""

    engine: str
    """`postgres`, `sqlite` or `null`."""

    def query(self, sql: str) -> list[Row]:
        """Runs one or more statements; the rows of the last, each value as text or None. FailureError."""
        ...

    def copy_in(self, sql: str, data: bytes) -> int:
        """Runs a COPY … FROM STDIN with `data`; rows copied."""
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
