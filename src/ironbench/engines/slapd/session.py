"""Session with a directory server that ironbench started or that exists."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ironbench.engines.server_session import LocalServer, OwnedServer, ServerSession
from ironbench.engines.slapd import facts
from ironbench.engines.slapd.dsn import DirectoryAddress
from ironbench.errors import EntryRefusedError, FailureError
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row

if TYPE_CHECKING:
    from ironbench._core import LdapConnection

OPERATION_S = 30.0
"""Time limit in seconds of an operation on an existing directory. The operation accesses one entry or lists a few
entries."""
ENTRY_S = 0.001
"""Seconds added to the time limit for each entry that a count may have to read. OpenLDAP reads tens of thousands of
entries per second."""


@dataclass(frozen=True, slots=True)
class DirectoryLine:
    """A separate connection to a directory, as described in `model.session.WorkConnection`."""

    connection: LdapConnection

    def measure(self, sql: str, limit_s: float | None = None) -> tuple[int, float, float]:
        return self.connection.measure(sql, limit_s)

    def query(self, sql: str, limit_s: float | None = None) -> list[Row]:
        return self.connection.query(sql, limit_s)

    def columns(self) -> list[str]:
        return self.connection.columns()

    def copy_in(self, sql: str, data: bytes) -> int:
        return self.connection.copy_in(sql, data)

    def cancel(self) -> None:
        """Cancels the operation in progress by closing the connection."""
        self.connection.close()

    def close(self) -> None:
        self.connection.close()


class SlapdSession(ServerSession[DirectoryAddress, DirectoryLine]):
    engine = "slapd"
    title = "OpenLDAP"
    broken = ("",)
    alive_query = "search ?1.1"

    def __init__(
        self,
        address: DirectoryAddress,
        secrets: Secrets,
        own: OwnedServer | None = None,
        load_offline: Callable[[Iterable[bytes]], None] | None = None,
    ) -> None:
        """Connects to the server. `load_offline`: function that loads data while the server is stopped. The function is
        given for a server that ironbench started."""
        self._load_offline = load_offline
        super().__init__(address, secrets, own)

    def connect(self, as_client: bool = False) -> DirectoryLine:
        from ironbench import _core

        connection = self._address.connection(self._secrets)
        connection = self.of_client(connection) if as_client else connection
        return DirectoryLine(_core.LdapConnection(json.dumps(connection).encode(), self.silence_s))

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        return {"kind": "ldap", "connection": self.of_client(self._address.connection(self._secrets)), "io": io}

    def _limit_s(self) -> float | None:
        limit_s = super()._limit_s()
        return limit_s if self._own is not None else min(OPERATION_S, limit_s or OPERATION_S)

    @property
    def base(self) -> str:
        return self._address.base

    @property
    def is_own(self) -> bool:
        return self._own is not None

    def known(self) -> dict[str, Any]:
        return self.asked(facts.read)

    def counters(self) -> dict[str, int]:
        return self.asked(facts.counters)

    def found(self) -> LocalServer:
        return LocalServer()

    def moved(self, socket_directory: str) -> DirectoryAddress:
        return replace(self._address, socket=f"{socket_directory}/ldapi")

    @property
    def on_socket(self) -> bool:
        return self._address.socket is not None

    @property
    def role(self) -> str:
        return self._address.user

    def fill(self, pieces: Iterable[bytes], changes: Iterable[bytes] = ()) -> None:
        """Loads an LDIF file, as in `model.session.DirectorySession`."""
        if self._own is not None and self._load_offline is not None:
            self._stop_and_load(self._own, self._load_offline, pieces)
            pieces = ()
        for piece in itertools.chain(pieces, changes):
            try:
                self.copy_in("", piece)
            except FailureError as error:
                if not error.number:  # the connection was lost, so no entry was refused
                    raise
                refused = EntryRefusedError(error.subject, error.cause, error.hint)
                # The subject of an error from the core's `copy_in` is the kind of change and the entry's DN.
                refused.change, _, refused.dn = error.subject.partition(" ")
                raise refused from error

    def _stop_and_load(
        self, own: OwnedServer, load_offline: Callable[[Iterable[bytes]], None], pieces: Iterable[bytes]
    ) -> None:
        with self._lock:
            self._drop()
            own.running.stop()
            try:
                load_offline(pieces)
            finally:
                self._own = replace(own, running=own.again())
                self._address = self.moved(self._own.running.socket_directory)
            self._connection = self.connect()

    def count(self, search: str, among: int = 0) -> int:
        """Counts entries, as in `model.session.DirectorySession`."""
        limit_s = self._limit_s() if self.is_own else OPERATION_S + among * ENTRY_S
        line = self.connect()
        try:
            return line.measure(search, limit_s)[0]
        finally:
            line.close()
