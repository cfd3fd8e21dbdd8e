"""Failures under the TPC-C-derived workload: conflicts are repeated and counted, and neither a killed server nor a full
disk nor a server without autocommit leaves data that break a consistency condition."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from factories import require_installed
from own_server import FILES
from patience import eventually
from raw_mysql import LACKING, PASSWORD, RawMysql
from raw_server import free_port
from test_tpcc_trial import Trial, loaded
from test_tpch_load import running
from user import User

from ironbench.host import processes
from ironbench.model.system import Load
from ironbench.workloads.tpcc import WORKLOAD, checks

pytestmark = [pytest.mark.live, pytest.mark.long]

SERVERS = ("postgres", "mariadb")
CLIENTS = 16
TRIAL = ("--clients", "4", "--warmup", "0s", "--no-observe")
LOAD_S = 240.0
FAILED = 1
"""Exit code if every trial failed."""


@pytest.mark.parametrize("engine", (*SERVERS, "sqlite"))
def test_sixteen_terminals_of_one_warehouse_repeat_every_conflict_and_nothing_fails(engine: str, place: Path) -> None:
    for session in loaded(engine, place, CLIENTS):
        busy = Load(CLIENTS, duration_s=6.0, warmup_s=0.0, max_tries=WORKLOAD.usual_max_tries, seed=7)
        trial = Trial(session, busy)
        summary = trial.summary
        assert not summary["failed"], summary["error_messages"]
        assert all(trial.completed.values()) and trial.failed() == {}
        # Every repeated attempt had an error, which is counted by its class.
        assert summary["retries"] == sum(summary["errors"].values())
        if engine == "postgres":
            assert summary["errors"].keys() <= {"40001", "40P01"} and summary["errors"].get("40001", 0) > 0


def servers(data: Path, engine: str) -> list[int]:
    return list(processes.working_in(data / FILES[engine]))


def kept(engine: str, place: Path) -> list[str]:
    """Returns the conditions that the data violate."""
    with running(engine, place) as session:
        return [check.name for check in checks.at_any_time(session, 1) if not check.passed]


@pytest.mark.parametrize("engine", SERVERS)
@pytest.mark.parametrize("when", ["load tpcc", "trial 1"])
def test_a_server_killed_in_load_or_trial_leaves_consistent_data_for_the_next_run(
    user: User, engine: str, when: str, place: Path
) -> None:
    require_installed(engine)
    data = place / engine
    words = ("run", "tpcc", "--engine", engine, "--data", str(data), *TRIAL, "--json")
    with user.begun(*words, "--duration", "60s") as run:
        assert eventually(lambda: when in run.stderr.read_text(), LOAD_S)
        time.sleep(0.5 if when.startswith("load") else 3.0)
        os.kill(min(servers(data, engine)), signal.SIGKILL)
        told, _ = run.end(within_s=LOAD_S)
    assert told.code == 1 and "Traceback" not in told.stderr, told.stderr
    assert eventually(lambda: not servers(data, engine)) and user.nothing_runs()
    if when == "trial 1":
        (record,) = user.records()
        assert record["status"] == "voided" and "SIGKILL" in str(record["cause"])
        assert kept(engine, place) == []
    with user.begun(*words, "--duration", "2s") as run:
        again, _ = run.end(within_s=LOAD_S)
    assert again.code in (0, 3), again
    assert checks_passed(user.records()[-1])


def checks_passed(record: dict[str, Any]) -> bool:
    return bool(record["checks"]) and all(check["passed"] for check in record["checks"])


@pytest.mark.parametrize("engine", SERVERS)
def test_a_disk_that_fills_in_the_load_is_named_and_the_load_continues_when_there_is_space(
    user: User, engine: str, small_disk: Any
) -> None:
    require_installed(engine)
    disk = small_disk(900)
    words = ("run", "tpcc", "--engine", engine, "--data", str(disk / "d"), *TRIAL)
    with user.begun(*words, "--duration", "2s") as run:
        run.wait_for("load tpcc")
        with (disk / "ballast").open("wb") as ballast:
            try:
                while ballast.write(b"x" * (1 << 20)):
                    ballast.flush()
            except OSError:
                pass
        told, _ = run.end(within_s=LOAD_S)
    assert told.code == 1 and "Traceback" not in told.stderr, told
    assert "No space left on device" in told.stderr or "is full" in told.stderr or "free some space" in told.stderr
    assert eventually(user.nothing_runs)
    (disk / "ballast").unlink()
    with user.begun(*words, "--duration", "2s") as run:
        again, _ = run.end(within_s=LOAD_S)
    assert again.code in (0, 3), again
    assert checks_passed(user.records()[-1])


@pytest.fixture
def no_autocommit(place: Path) -> Iterator[RawMysql]:
    """A server whose sessions start with `autocommit=0`."""
    if LACKING:
        pytest.skip("mariadbd is not on PATH (Debian's package mariadb-server-core)")
    server = RawMysql(place, free_port(), ["--autocommit=0", "--innodb-buffer-pool-size=128M"])
    yield server
    server.stop()


@pytest.mark.parametrize(
    "workload",
    [
        ("tpcc",),
        ("tpcc", "--with", "procedures=true"),
        ("sysbench", "--with", "tables=2", "--with", "table-size=1000"),
        ("sysbench", "--with", "test=oltp_update_index", "--with", "tables=2", "--with", "table-size=1000"),
        ("ycsb", "--with", "records=1000"),
    ],
    ids=" ".join,
)
def test_a_server_without_autocommit_runs_the_same_transactions(
    user: User, no_autocommit: RawMysql, workload: tuple[str, ...]
) -> None:
    dsn = f"mysql://root@localhost/d?socket={no_autocommit.socket}&tls=disable"
    with user.begun("run", *workload, "--dsn", dsn, *TRIAL, "--duration", "2s") as run:
        told, _ = run.end(within_s=LOAD_S)
    assert told.code in (0, 3), told
    (record,) = user.records()
    assert checks_passed(record) and record["metrics"]["transactions"] > 0
    assert record["metrics"]["failed"] == 0, record


@pytest.mark.skipif(LACKING, reason="needs mariadbd")
def test_a_role_of_mariadb_without_create_routine_runs_client_sql_but_no_procedures(place: Path) -> None:
    (place / "server").mkdir()
    server = RawMysql(place / "server", free_port())
    try:
        user = User(place)
        address = f"mysql://root@/d?socket={server.socket}"
        user.measured("run", "tpcc", "--dsn", address, *TRIAL, "--duration", "1s")
        server.query(
            f"create user teller identified by '{PASSWORD}'; "
            "grant select, insert, update, delete, create, drop, alter, index on d.* to teller"
        )
        trial = ("run", "tpcc", "--dsn", f"mysql://teller:{PASSWORD}@127.0.0.1:{server.port}/d", *TRIAL)
        refused = user(*trial, "--duration", "2s", "--with", "procedures=true")
        assert refused.code == FAILED and "--with procedures=true" in refused.stderr
        assert "grant the role the privilege to create procedures" in refused.stderr
        assert PASSWORD not in refused.stdout + refused.stderr
        user.measured(*trial, "--duration", "2s")
    finally:
        server.stop()
