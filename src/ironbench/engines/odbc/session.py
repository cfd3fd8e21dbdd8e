"""Session with a database through an ODBC driver. The session consists of a connection to the database, and of the
functions that trials and loading need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ironbench import engines
from ironbench.engines.administration import no_checkpoint
from ironbench.engines.base import SessionDefaults
from ironbench.engines.odbc import databases, driver, load, trial_child
from ironbench.engines.odbc.dialects import with_from
from ironbench.engines.odbc.dsn import OdbcAddress
from ironbench.engines.odbc.process import OdbcLine, package_folder
from ironbench.engines.statement_timeouts import Limited
from ironbench.errors import FailureError, IronbenchError, written
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row

_T = TypeVar("_T")
_ALIVE_S = 10.0
"""Time limit of a trivial query, in seconds."""
_ANSWER_S = 30.0
"""Time limit of a query about the server itself, in seconds."""


class OdbcSession(Limited, SessionDefaults):
    """A session with an existing database, which is never configured, started or stopped."""

    def __init__(self, engine: str, address: OdbcAddress, secrets: Secrets) -> None:
        """Connects. Raises InputError and FailureError."""
        self.engine = engine
        self._whole = address.whole(secrets)
        self._using = threading.Lock()
        self._stopped = False
        self._connection: OdbcLine | None = OdbcLine(self._whole)
        self.driver_info = self._connection.driver_info
        self.kind = databases.of(self.driver_info["product"])
        self._sql_mode = ""
        if self.kind.backslashes:
            self._sql_mode = self._connection.query("select @@sql_mode")[0][0] or ""
        if self.kind.own or self.kind.splits:
            self._connection.close()
            self._connection = self.line()

    def line(self, cpus: Sequence[int] = ()) -> OdbcLine:
        kind = self.kind
        return OdbcLine(
            self._whole, kind.own, splits=kind.splits, backslashes=kind.backslashes, limit_s=self._limit_s()
        )

    def query(self, sql: str) -> list[Row]:
        if not self.kind.checkpoints and sql == engines.get(self.engine).traits.dialect.checkpoint():
            raise no_checkpoint()
        asked = with_from(sql, self.kind.one_row) if self.kind.one_row else sql
        return self._attempt(lambda connection: connection.query(asked, self._limit_s()))

    def copy_in(self, sql: str, data: bytes) -> int:
        return self._attempt(lambda connection: connection.copy_in(sql, data))

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        packages = package_folder()
        return {
            "kind": "called",
            "address": self._whole,
            "product": self.driver_info["product"],
            "core": {"mysql": self.kind.backslashes, "sql_mode": self._sql_mode},
            "driver": {"module": trial_child.__name__, "packages": packages},
            "loader": {"module": load.__name__, "packages": packages},
        }

    def facts(self) -> dict[str, Any]:
        with self.limited(_ANSWER_S):
            return self._known()

    def _known(self) -> dict[str, Any]:
        kind, info = self.kind, self.driver_info
        settings: dict[str, str] = {}
        if kind.settings:
            try:
                settings = {str(row[0]): row[1] or "" for row in self.query(kind.settings)}
            except FailureError as error:
                settings = {"unknown": error.cause}
        return {
            "engine": self.engine,
            "version": self.version(),
            "product": f"{info['product']} {info['version']}",
            "driver": f"{info['driver']} {info['driver_version']}",
            "odbc": f"{info['driver_odbc']}, driver manager {info['manager']}, pyodbc {info['pyodbc']}",
            "dialect": kind.title if kind.tried else f"{kind.title} (untried)",
            "settings": settings,
            "client": "threads of one Python process: a limit earlier than the core's own wires",
            "server": "running already; neither configured nor stopped by ironbench",
        }

    def version(self) -> str:
        """Returns the version of the database in the most precise form that the database reports."""
        if not self.kind.version:
            return self.driver_info["version"]
        return self.query(self.kind.version)[0][0] or ""

    def alive(self) -> bool:
        if self._stopped:
            return False
        try:
            with self.limited(_ALIVE_S):
                self.require_answer()
        except IronbenchError:
            return False
        return True

    def require_answer(self) -> None:
        """Raises FailureError if the database does not answer (`model.session.RemoteSession`)."""
        try:
            self.query("select 1")
        except FailureError as error:
            # Some databases do not accept this statement. If a database refuses it, the database is alive.
            if not error.sqlstate or driver.is_lasting(error):
                raise

    def restart(self) -> None:
        raise FailureError(driver.SUBJECT, f"ironbench does not restart existing databases ({written('system.dsn')})")

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._drop()

    def _attempt(self, use: Callable[[OdbcLine], _T]) -> _T:
        """Calls `use` with the connection. A broken connection is replaced at the next call."""
        with self._using:
            if self._stopped:
                raise FailureError(driver.SUBJECT, "the session was stopped")
            questions = self._questions()
            if questions is not None and questions.unanswered is not None:
                raise questions.unanswered
            if self._connection is None:
                self._connection = self.line()
            try:
                return use(self._connection)
            except FailureError as error:
                if not error.sqlstate or driver.is_lasting(error):
                    self._drop()
                    if questions is not None:
                        questions.unanswered = error
                raise

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
