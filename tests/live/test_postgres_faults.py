"""Server failures: each is named, and no process of ironbench is left running."""

import os
import shutil
import signal
from pathlib import Path

import own_server as pg
import pytest
from patience import eventually

from ironbench import engines
from ironbench.engines.postgres import installation
from ironbench.errors import FailureError
from ironbench.host import register, shared_memory
from ironbench.model.system import System

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("own_register")]


@pytest.mark.parametrize(
    ("settings", "cause", "hint"),
    [
        ({"shared_bufers": "1GB"}, "no such setting", "did you mean shared_buffers"),
        ({"work_mem": "4XB"}, 'invalid value for parameter "work_mem": "4XB"', "Valid units"),
        ({"io_method": "io_uring"}, 'invalid value for parameter "io_method"', "Available values: sync, worker"),
        ({"server_version": "9"}, 'parameter "server_version" cannot be changed', ""),
        ({"max_wal_size": "0"}, "outside the valid range", ""),
        ({"port": "5433"}, "private socket", ""),
        ({"data_directory": "/x"}, "the layout sets the data directory", ""),
        ({"max_connections": "5"}, "need at least 24", ""),
        ({"bin": "/nonexistent"}, "there is no postgres in /nonexistent", "pg_config --bindir"),
        ({"work_mem": "4MB\nfsync=off"}, "contains a line break", ""),
    ],
)
def test_a_setting_that_the_server_would_refuse_is_refused_before_it_starts(place, settings, cause, hint) -> None:
    error = pg.refused(pg.system(place / "d", settings=settings))
    assert cause in error.cause
    assert hint in error.hint
    assert not (place / "d").exists()


def test_settings_that_only_developers_know_are_taken(place: Path) -> None:
    session = pg.start(pg.system(place / "d", settings={"jit_expressions": "off"}))
    try:
        assert session.query("SHOW jit_expressions") == [("off",)]
    finally:
        session.stop()


@pytest.mark.parametrize(("clients", "cause"), [(0, "at least one"), (100_000, "one process per client")])
def test_a_number_of_clients_that_no_server_carries_is_refused(place: Path, clients: int, cause: str) -> None:
    assert cause in pg.refused(pg.system(place / "d"), clients).cause


@pytest.mark.parametrize(("memory_bytes", "cause"), [(1000, "at least 128 kB"), (1 << 60, "this machine has")])
def test_a_cache_that_cannot_be_is_refused(place: Path, memory_bytes: int, cause: str) -> None:
    assert cause in pg.refused(pg.system(place / "d", memory_bytes=memory_bytes)).cause


def test_a_cluster_of_another_version_is_refused(place: Path) -> None:
    (place / "d" / "cluster").mkdir(parents=True)
    (place / "d" / "ironbench.json").write_text('{"made_by": "ironbench"}')
    (place / "d" / "cluster" / "PG_VERSION").write_text("12\n")
    assert "was created by PostgreSQL 12" in pg.refused(pg.system(place / "d")).cause


def test_options_that_would_change_a_running_server_are_refused() -> None:
    for told in ({"settings": {"work_mem": "1MB"}}, {"memory_bytes": 1 << 30}, {"server_cpus": (0,)}):
        error = pg.refused(System("postgres", "test", dsn="host=h user=u", **told))
        assert "does not configure existing servers" in error.cause


def test_the_password_leaves_the_system_before_anything_else_happens() -> None:
    wanted = System("postgres", "test", dsn="postgresql://u:hidden@localhost:1/d")
    checked, secrets = engines.get("postgres").validated(wanted, 1)
    assert "hidden" not in repr(checked)
    assert secrets.password == "hidden"
    with pytest.raises(FailureError) as caught:
        engines.get("postgres").start(checked, secrets, 1)
    assert "hidden" not in str(caught.value)


def test_a_killed_server_leaves_no_shared_memory(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    names = register.entries()[0].shared
    # The main process does not map memory that only backends share, such as statistics of many tables.
    session.query("DO $$ BEGIN FOR n IN 1..3000 LOOP EXECUTE format('CREATE TABLE t%s (a int)', n); END LOOP; END $$")
    files = {Path(name.removeprefix("list:")) for name in names if "/" in name}
    own = len(files)
    for pid in session.processes():
        files |= {Path(name.removeprefix("list:")) for name in shared_memory.of(pid, "PostgreSQL.", 0) if "/" in name}
    assert len(files) > own
    identifiers = [name.split(":")[2] for name in names if name.startswith("sysv:")]
    assert files
    assert identifiers
    assert all(path.exists() for path in files)
    os.kill(pg.pid_of(session), signal.SIGKILL)
    session.stop()
    assert not any(path.exists() for path in files)
    there = [line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()]
    assert not set(identifiers) & set(there)


def test_a_backend_that_crashes_does_not_end_the_session(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    try:
        connection = session.connect()
        os.kill(connection.backend_pid, signal.SIGKILL)
        connection.close()

        def answers() -> bool:
            try:
                return session.query("SELECT 1") == [("1",)]
            except FailureError:
                return False

        assert eventually(answers)
    finally:
        session.stop()


@pytest.mark.parametrize("pid", ["999999999", "1", "ours"])
def test_a_stale_pid_file_is_no_obstacle(place: Path, pid: str) -> None:
    """The process named in the file is dead, or its pid was reused, in this test even by a process of the same user."""
    session = pg.start(pg.system(place / "d"))
    session.stop()
    number = os.getpid() if pid == "ours" else pid
    (place / "d/cluster/postmaster.pid").write_text(f"{number}\n{place}/d/cluster\n1\n5432\n/tmp\n\n  1 1\nready   \n")
    session = pg.start(pg.system(place / "d"))
    assert session.alive()
    session.stop()


def test_a_failed_initdb_leaves_no_half_a_cluster(place: Path, monkeypatch) -> None:
    found = installation.find()
    broken = place / "bin"
    shutil.copytree(found.bin, broken, symlinks=True)
    (broken / "initdb").write_text("#!/bin/sh\necho 'initdb: error: No space left on device' >&2\nexit 1\n")
    with pytest.raises(FailureError) as caught:
        pg.start(pg.system(place / "d", settings={"bin": str(broken)}))
    assert "No space left on device" in caught.value.cause
    assert not (place / "d" / "cluster").exists()
    assert not (place / "d" / "cluster.new").exists()
    session = pg.start(pg.system(place / "d"))
    session.stop()


def test_a_mistake_in_a_transaction_keeps_the_connection(postgres) -> None:
    postgres.query("BEGIN")
    with pytest.raises(FailureError):
        postgres.query("SELECT no_such_column")
    with pytest.raises(FailureError) as caught:
        postgres.query("SELECT 1")
    assert caught.value.sqlstate == "25P02"
    postgres.query("ROLLBACK")
    assert postgres.query("SELECT 1") == [("1",)]
