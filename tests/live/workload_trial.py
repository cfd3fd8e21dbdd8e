"""Loads a workload, drives it and checks it, on a database of `raw_server` or on an SQLite file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ironbench import _core, engines, workloads
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.model.record import Check
from ironbench.model.system import Choice, Load
from ironbench.printer import Printer
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.trial.load import Loaded
from ironbench.trial.load.prepare import fill
from tests.live.raw_server import RawServer


class Served:
    """The part of a session that loading and checking need, on one database of a running server."""

    engine = "postgres"

    def __init__(self, server: RawServer, database: str) -> None:
        self._server = server
        self._connection = server.connection(database=database)
        self._session = _core.Connection(json.dumps(self._connection).encode())

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        return self._session.query(sql)

    @property
    def commits(self) -> int:
        return self._session.commits

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        return {"kind": "postgres", "connection": self._connection, "protocol": load_protocol, "io": io}

    def directories(self) -> dict[str, str]:
        return {"data": self._server.host}

    def within(self) -> tuple[str, ...]:
        return ()

    def line(self, cpus: Sequence[int] = ()) -> _core.Connection:
        return _core.Connection(json.dumps(self._connection).encode())

    def reopened(self) -> Served:
        """Returns another session on the same database."""
        return Served(self._server, self._connection["database"])

    def close(self) -> None:
        self._session.close()


class Filed:
    """Like `Served`, but for an SQLite file."""

    engine = "sqlite"

    def __init__(self, folder: Path, *pragmas: str) -> None:
        self._path = str(folder / "trial.db")
        self._pragmas = ["pragma journal_mode=wal", "pragma synchronous=off", *pragmas]
        self._session = _core.SqliteConnection(self._path, self._pragmas)

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        return self._session.query(sql)

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        return {"kind": "sqlite", "path": self._path, "pragmas": [*self._pragmas, "pragma busy_timeout=10000"]}

    def directories(self) -> dict[str, str]:
        return {"data": str(Path(self._path).parent)}

    def within(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        self._session.close()


Target = Served | Filed | MariadbSession


def without_references(session: Target) -> None:
    """Allows this session to violate foreign keys, and disables triggers for it."""
    if session.engine == "postgres":
        session.query("set session_replication_role = replica")
    elif session.engine == "mariadb":
        session.query("set foreign_key_checks = off")
    else:
        session.query("drop trigger igen_order_lines_go")


def loaded(session: Target, name: str, connections: int = 2, own_server: bool = True, **options: str) -> Loaded:
    workload = workloads.get(name)
    dataset = workload.dataset(session.engine, workload.validated(options))
    assert dataset is not None
    return fill(session, dataset, connections, Printer.silent(), own_server)


class Trial:
    """A finished trial; `checks()` may be called again after tampering."""

    def __init__(
        self,
        session: Target,
        name: str,
        transactions: int = 100,
        clients: int = 4,
        protocol: str = "prepared",
        **options: str,
    ) -> None:
        self._session = session
        self._workload = workloads.get(name)
        self._options = self._workload.validated(options)
        choice = Choice(name, self._options)
        tries = self._workload.usual_max_tries
        load = Load(clients, duration_s=None, transactions=transactions, max_tries=tries, protocol=protocol, seed=5)
        retried = engines.get(session.engine).traits.duplicate_key if self._workload.retries_duplicate_keys else ()
        plan = compiled_plan(
            session.target(protocol),
            Tasks(
                self._workload.scripts(session.engine, choice),
                self._workload.variables(self._options),
                jobs=self._workload.jobs(session, self._options, load),
                bind_back=self._workload.binds_back(self._options),
                retried_errors=retried,
            ),
            load,
            (),
        )
        self._before = self._workload.before(session, self._options)
        self.summary: Mapping[str, Any] = json.loads(_core.drive(plan).summary)
        assert not self.summary["failed"], self.summary["error_messages"]
        assert self.summary["completed"] == clients * transactions

    def checks(self, **changed: Any) -> dict[str, Check]:
        found = self._workload.check(self._session, self._options, self._before, {**self.summary, **changed})
        return {check.name: check for check in found}

    def failed(self, **changed: Any) -> set[str]:
        return {name for name, check in self.checks(**changed).items() if not check.passed}
