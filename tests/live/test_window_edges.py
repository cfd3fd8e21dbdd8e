"""No client time is lost at the start and end of the window, however long a transaction waits for a lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
import trial
from raw_server import RawServer

from ironbench import _core
from ironbench.errors import FailureError

pytestmark = [pytest.mark.live, pytest.mark.alone]


class Holder(Protocol):
    def query(self, sql: str) -> object: ...


def at_work_s(driven: trial.Trial) -> float:
    """Returns the time that all clients together spent in transactions inside the window."""
    told = driven.summary
    return driven.histograms["service_time"].sum_s + told["unfinished_s"] - told["carried_s"]


def held(take: Callable[[], object], holder: Holder) -> Callable[[_core.Progress], None]:
    """Takes a lock that every transaction needs, and keeps it until the window is over."""

    def hold(progress: _core.Progress) -> None:
        take()
        try:
            assert progress.phase == "run", "the lock came after the window"
            while progress.phase == "run":
                time.sleep(0.01)
            time.sleep(0.3)
        finally:
            holder.query("rollback")

    return hold


def taken_between_others(holder: _core.SqliteConnection) -> None:
    """Takes SQLite's lock by trying again and again. The lock has no queue, so a client that sleeps between tries may
    never find it free while two clients write."""
    until = time.monotonic() + 1.0
    while True:
        try:
            holder.query("begin immediate")
        except FailureError:
            if time.monotonic() > until:
                raise
            continue
        return


def assert_all_time_is_there(driven: trial.Trial) -> None:
    told = driven.summary
    assert told["failed"] == 0
    assert told["unfinished"] == told["clients"]
    whole_s = told["clients"] * told["elapsed_s"]
    assert at_work_s(driven) == pytest.approx(whole_s, rel=0.1)
    assert told["unfinished_s"] > whole_s / 10


def test_a_client_that_waits_for_sqlite_s_lock_at_the_end_is_counted(place: Path) -> None:
    path = str(place / "trial.db")
    holder = _core.SqliteConnection(path, ["pragma journal_mode=wal", "pragma busy_timeout=0"])
    holder.query("create table t (n integer)")
    engine = {"kind": "sqlite", "path": path, "pragmas": ["pragma busy_timeout=20000"]}
    driven = trial.run_and_meanwhile(
        held(lambda: taken_between_others(holder), holder), engine, "insert into t values (1);\n", clients=2
    )
    assert_all_time_is_there(driven)
    holder.close()


@pytest.mark.parametrize("io", ["epoll", "auto"])
def test_a_client_that_waits_for_postgres_lock_at_the_end_is_counted(
    raw_server: RawServer, database: str, io: str
) -> None:
    holder = raw_server.connect(database=database)
    holder.query("create table t (n integer)")
    engine: dict[str, Any] = trial.postgres(raw_server.connection(database=database), io=io)
    driven = trial.run_and_meanwhile(
        held(lambda: holder.query("begin; lock table t"), holder), engine, "insert into t values (1);\n", clients=2
    )
    assert_all_time_is_there(driven)
    holder.close()


def test_time_before_the_window_is_known(raw_server: RawServer, database: str) -> None:
    """A transaction of 0.5 s spans the start: its response time includes all of it, the window only a part."""
    engine = trial.postgres(raw_server.connection(database=database))
    driven = trial.run(engine, "select pg_sleep(0.5);\n", clients=1, warmup_s=0.7, stop={"duration_s": 1.1})
    told = driven.summary
    assert 0.0 < told["carried_s"] < 0.5
    assert at_work_s(driven) == pytest.approx(told["elapsed_s"], rel=0.1)
