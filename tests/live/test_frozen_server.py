"""Queries, loads, checks and programs do not wait forever for a server whose processes are frozen (SIGSTOP)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import own_server
import pytest
from directory_server import BASE, serving, started
from factories import require_installed
from odbc_drivers import MARIADB, needs
from patience import eventually
from raw_mysql import PASSWORD, RawMysql
from raw_server import RawServer

from ironbench import engines, workloads
from ironbench.engines import server_session
from ironbench.engines.mariadb import dsn as mysql_dsn
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.engines.odbc.session import OdbcSession
from ironbench.engines.postgres import dsn as postgres_dsn
from ironbench.engines.postgres.session import PostgresSession
from ironbench.engines.server_session import ServerSession
from ironbench.engines.slapd import dsn as ldap_dsn
from ironbench.engines.slapd.session import SlapdSession
from ironbench.errors import FailureError
from ironbench.host.programs import Program
from ironbench.model.system import System
from ironbench.printer import Printer
from ironbench.trial.load import prepare, rows

pytestmark = pytest.mark.live

CONNECTING_S = 1.5
"""Connection timeout in these tests. Otherwise, it is 10 s."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in (postgres_dsn.PostgresAddress, mysql_dsn.MysqlAddress, ldap_dsn.DirectoryAddress):
        described = address.connection

        def impatiently(*of: Any, described: Any = described, **how: Any) -> dict[str, Any]:
            return described(*of, **how) | {"connect_timeout_s": CONNECTING_S}

        monkeypatch.setattr(address, "connection", impatiently)
    for name in ("_SILENCE_S", "_OWN_SILENCE_S"):
        monkeypatch.setattr(server_session, name, 0.3)
    monkeypatch.setattr(rows, "SILENCE_S", 0.3)


def family(pid: int) -> list[int]:
    """Returns the process and all of its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    halted = family(pid)
    try:
        for one in halted:
            os.kill(one, signal.SIGSTOP)
        # A signal stops the threads of a server one by one; until the last is stopped it may still answer.
        assert eventually(lambda: all(_stopped(one) for one in halted), 10.0)
        yield
    finally:
        for one in halted:
            os.kill(one, signal.SIGCONT)


def _stopped(pid: int) -> bool:
    """Returns whether every thread of a process is stopped, or the process has ended."""
    try:
        states = [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    except FileNotFoundError:
        return False  # a thread ended meanwhile
    return all(state in "TtZ" for state in states)


def ends(work: Callable[[], object], pid: int, after_s: float = 0.0) -> FailureError:
    """Returns the error of `work` on a server that is frozen `after_s` after its start, within a time a human would
    wait."""
    with ThreadPoolExecutor(1) as one, contextlib.ExitStack() as stack:
        if not after_s:
            stack.enter_context(frozen(pid))
        working = one.submit(work)
        time.sleep(after_s)
        if after_s:
            stack.enter_context(frozen(pid))
        failed = working.exception(60)
    assert isinstance(failed, FailureError)
    return failed


def is_given_up(session: ServerSession[Any, Any], pid: int) -> None:
    """Checks that the session is given up, and used again when the server runs again."""
    try:
        with frozen(pid):
            with pytest.raises(FailureError, match="stopped answering, on this connection and on a new one"):
                session.query(session.alive_query)
            assert not session.alive()
        assert session.alive()
    finally:
        session.stop()


def test_a_frozen_postgres_is_given_up(raw_server: RawServer) -> None:
    where = postgres_dsn.parse(f"host={raw_server.host} port={raw_server.port} user=postgres dbname=postgres", {})
    assert raw_server.process is not None
    is_given_up(PostgresSession(*where), raw_server.process.pid)


def test_a_frozen_mariadb_is_given_up(raw_mysql: RawMysql) -> None:
    where = mysql_dsn.parse(f"mysql://root@localhost/d?socket={raw_mysql.socket}", {})
    is_given_up(MariadbSession(*where), raw_mysql.process.pid)


def test_a_frozen_directory_is_given_up(place: Path) -> None:
    require_installed("slapd")
    with serving(place, "slapd") as server:
        pid = server.session._own.running.process.pid  # type: ignore[union-attr]
        is_given_up(SlapdSession(*ldap_dsn.parse(f"ldap://localhost:{server.port}/{BASE}", {})), pid)


@pytest.fixture
def behind_driver(raw_mysql: RawMysql, monkeypatch: pytest.MonkeyPatch, own_register: Path) -> Iterator[OdbcSession]:
    """A session of MariaDB through ODBC."""
    monkeypatch.setattr("ironbench.engines.odbc.process._SILENCE_S", 0.3)
    monkeypatch.setattr("ironbench.engines.odbc.process._PROBE_S", CONNECTING_S)
    monkeypatch.setattr("ironbench.engines.odbc.session._ALIVE_S", CONNECTING_S)
    monkeypatch.setattr("ironbench.host.job.STOP_S", 0.3)
    here = f"Server=127.0.0.1;Port={raw_mysql.port};Database=d;UID=password_user;PWD={{{PASSWORD}}}"
    dsn = f"odbc:Driver={{{MARIADB}}};{here}"
    engine = engines.get("odbc").engine_for(dsn)
    session = engine.start(*engine.validated(System(engine.name, "test", dsn=dsn), 1), 1)
    assert isinstance(session, OdbcSession)
    yield session
    session.stop()


@needs[MARIADB]
def test_a_frozen_database_behind_a_driver_is_given_up(behind_driver: OdbcSession, raw_mysql: RawMysql) -> None:
    assert behind_driver.query("select sleep(1)") == [("0",)], "a busy database is waited for"
    assert "stopped answering" in str(ends(behind_driver.require_answer, raw_mysql.process.pid))
    with frozen(raw_mysql.process.pid):
        assert not behind_driver.alive()
    behind_driver.require_answer()


@pytest.mark.long
@needs[MARIADB]
def test_a_load_of_a_frozen_database_behind_a_driver_is_given_up(
    behind_driver: OdbcSession, raw_mysql: RawMysql
) -> None:
    workload = workloads.get("tpcb-like")
    dataset = workload.dataset(behind_driver.engine, workload.validated({"scale": "5"}))
    assert dataset is not None
    try:
        load = lambda: prepare.fill(behind_driver, dataset, 2, Printer.silent(), True)  # noqa: E731
        assert "stopped answering" in ends(load, raw_mysql.process.pid, 1.0).cause
    finally:
        raw_mysql.query(f"drop table if exists {', '.join(f'd.{table}' for table in dataset.tables)}")


def test_a_busy_server_is_waited_for(raw_server: RawServer) -> None:
    where = postgres_dsn.parse(f"host={raw_server.host} port={raw_server.port} user=postgres dbname=postgres", {})
    session = PostgresSession(*where)
    try:
        assert session.query("select pg_sleep(2), 7")[0][1] == "7"
    finally:
        session.stop()


_long = [pytest.param(name, marks=pytest.mark.long) for name in ("mariadb", "slapd")]


@pytest.fixture(params=["postgres", *_long])
def own(request: pytest.FixtureRequest, place: Path, own_register: Path) -> Iterator[ServerSession[Any, Any]]:
    """A server that ironbench has started."""
    if request.param == "slapd":
        require_installed("slapd")
        with started(place) as directory:
            yield directory
        return
    session = own_server.start(own_server.system(place / "data", request.param))
    yield session
    session.stop()


def test_a_server_of_our_own_is_given_up_and_used_again(own: ServerSession[Any, Any]) -> None:
    pid = own_server.pid_of(own)
    with own.limited(3600.0):
        assert "stopped answering" in str(ends(own.require_answer, pid))
    assert own.alive()


@pytest.mark.parametrize("engine", ["postgres", _long[0]])
def test_a_load_is_given_up(engine: str, request: pytest.FixtureRequest, place: Path, own_register: Path) -> None:
    dataset = workloads.get("tpcb-like").dataset(engine, workloads.get("tpcb-like").validated({"scale": "20"}))
    assert dataset is not None
    session = own_server.start(own_server.system(place / "data", engine))
    try:
        failed = ends(
            lambda: prepare.fill(session, dataset, 2, Printer.silent(), True), own_server.pid_of(session), 0.5
        )
        assert "stopped answering" in failed.cause
    finally:
        session.stop()


@pytest.mark.long
def test_entries_added_one_by_one_are_given_up(place: Path) -> None:
    require_installed("slapd")
    with serving(place, "slapd") as server:
        session = SlapdSession(*ldap_dsn.parse(server.root, {}))
        entry = "dn: cn={0},{1}\nobjectClass: person\ncn: {0}\nsn: a\n\n"
        text = "".join(entry.format(number, BASE) for number in range(50_000)).encode()
        try:
            failed = ends(lambda: session.fill([text]), own_server.pid_of(server.session), 0.5)
            assert "stopped answering" in failed.cause
        finally:
            session.stop()


def test_a_check_that_gets_no_answer_is_no_check_that_passes(place: Path) -> None:
    require_installed("slapd")
    with started(place) as session:
        workload = workloads.get("directory")
        options = workload.validated({"entries": "10"})
        dataset = workload.dataset("slapd", options)
        assert dataset is not None
        prepare.fill(session, dataset, 1, Printer.silent(), True)
        before = workload.before(session, options)
        summary = {"commits": 0, "scripts": [{"name": "search", "completed": 5}]}
        failed = ends(lambda: workload.check(session, options, before, summary), own_server.pid_of(session))
        assert "stopped answering" in failed.cause


def test_a_program_that_works_with_it_is_ended(
    raw_server: RawServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ironbench.host.programs._WATCH_S", 0.3)
    where = postgres_dsn.parse(f"host={raw_server.host} port={raw_server.port} user=postgres dbname=postgres", {})
    session = PostgresSession(*where)
    assert raw_server.process is not None
    try:
        waiting = Program(["sleep", "600"], watch=session.require_answer)
        assert "stopped answering" in str(ends(waiting.run, raw_server.process.pid))
        assert waiting._process is not None
        assert waiting._process.wait(10) != 0
    finally:
        session.stop()


@pytest.mark.long
def test_a_file_of_sql_is_given_up(place: Path, own_register: Path) -> None:
    session = own_server.start(own_server.system(place / "data"))
    (file := place / "slow.sql").write_text("select pg_sleep(3);\n" * 20)
    data_import = engines.get("postgres").data_import
    try:
        load = lambda: data_import.set_up(session, file, lambda *_: None)  # noqa: E731
        assert "stopped answering" in str(ends(load, own_server.pid_of(session), 1.0))
    finally:
        session.stop()
