"""What goes wrong with servers: each fault is named, and nothing of ours is left running."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import own_server as pg
import pytest
from raw_server import PASSWORD, RawServer

from ironbench import engines
from ironbench.engines import identity
from ironbench.engines.postgres import installation
from ironbench.errors import FailureError, InputError
from ironbench.model.system import Layout, System
from ironbench.process import processes, register

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def own_register(monkeypatch, tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "ironbench"


def refused(wanted: System, clients: int = 4) -> InputError:
    """The error of a system that is refused before anything is made or started."""
    with pytest.raises(InputError) as caught:
        engines.get("postgres").validated(wanted, clients)
    assert register.entries() == []
    return caught.value


@pytest.mark.parametrize(
    ("settings", "cause", "hint"),
    [
        ({"shared_bufers": "1GB"}, "no setting of that name", "did you mean shared_buffers"),
        ({"work_mem": "4XB"}, 'invalid value for parameter "work_mem": "4XB"', "Valid units"),
        ({"io_method": "io_uring"}, 'invalid value for parameter "io_method"', "Available values: sync, worker"),
        ({"server_version": "9"}, 'parameter "server_version" cannot be changed', ""),
        ({"max_wal_size": "0"}, "outside the valid range", ""),
        ({"port": "5433"}, "private socket", ""),
        ({"data_directory": "/x"}, "the layout says where the data are", ""),
        ({"max_connections": "5"}, "need at least 24", ""),
        ({"bin": "/nonexistent"}, "there is no postgres in /nonexistent", "pg_config --bindir"),
        ({"work_mem": "4MB\nfsync=off"}, "one line", ""),
    ],
)
def test_a_setting_that_the_server_would_refuse_is_refused_before_it_starts(place, settings, cause, hint) -> None:
    error = refused(pg.system(place / "d", settings=settings))
    assert cause in error.cause
    assert hint in error.hint
    assert not (place / "d").exists()


def test_settings_that_only_developers_know_are_taken(place: Path) -> None:
    session = pg.start(pg.system(place / "d", settings={"jit_expressions": "off"}))
    try:
        assert session.query("SHOW jit_expressions") == [("off",)]
    finally:
        session.stop()


@pytest.mark.parametrize(("clients", "cause"), [(0, "at least one"), (100_000, "a process of its own")])
def test_a_number_of_clients_that_no_server_carries_is_refused(place: Path, clients: int, cause: str) -> None:
    assert cause in refused(pg.system(place / "d"), clients).cause


@pytest.mark.parametrize(("memory_bytes", "cause"), [(1000, "at least 128 kB"), (1 << 60, "this machine has")])
def test_a_cache_that_cannot_be_is_refused(place: Path, memory_bytes: int, cause: str) -> None:
    assert cause in refused(pg.system(place / "d", memory_bytes=memory_bytes)).cause


@pytest.mark.parametrize("role", ["data", "temp", "log"])
def test_a_stranger_s_directory_is_refused_and_left_as_it_is(place: Path, role: str) -> None:
    (place / "theirs").mkdir()
    (place / "theirs" / "precious.txt").write_text("do not touch")
    layout = replace(Layout(data=str(place / "d")), **{role: str(place / "theirs")})
    error = refused(System("postgres", "test", layout=layout))
    assert "precious.txt" in error.cause
    assert [path.name for path in (place / "theirs").iterdir()] == ["precious.txt"]


def test_the_root_of_a_fresh_file_system_is_an_empty_directory(place: Path) -> None:
    (place / "lost+found").mkdir()
    engines.get("postgres").validated(pg.system(place), 1)


def test_a_directory_under_a_file_is_refused(place: Path) -> None:
    (place / "file").touch()
    assert "is not a directory" in refused(pg.system(place / "file" / "d")).cause


def test_a_directory_that_cannot_be_written_is_named() -> None:
    with pytest.raises((InputError, FailureError)) as caught:
        pg.start(pg.system(Path("/proc/ironbench")))
    assert "/proc" in str(caught.value)
    assert register.entries() == []


def test_a_cluster_of_another_version_is_refused(place: Path) -> None:
    (place / "d" / "cluster").mkdir(parents=True)
    (place / "d" / "ironbench.json").write_text('{"made_by": "ironbench"}')
    (place / "d" / "cluster" / "PG_VERSION").write_text("12\n")
    assert "PostgreSQL 12 made it" in refused(pg.system(place / "d")).cause


def test_options_that_would_change_a_running_server_are_refused() -> None:
    for told in ({"settings": {"work_mem": "1MB"}}, {"memory_bytes": 1 << 30}, {"server_cpus": (0,)}):
        error = refused(System("postgres", "test", dsn="host=h user=u", **told))
        assert "not configured by ironbench" in error.cause


def test_the_password_leaves_the_system_before_anything_else_happens() -> None:
    wanted = System("postgres", "test", dsn="postgresql://u:hidden@localhost:1/d")
    checked, secrets = engines.get("postgres").validated(wanted, 1)
    assert "hidden" not in repr(checked)
    assert secrets.password == "hidden"
    with pytest.raises(FailureError) as caught:
        engines.get("postgres").start(checked, secrets, 1)
    assert "hidden" not in str(caught.value)


def test_a_directory_that_another_ironbench_uses_is_refused_with_its_process(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    try:
        with pytest.raises(InputError) as caught:
            pg.start(pg.system(place / "d"))
        assert str(os.getpid()) in caught.value.cause
        assert session.alive()
    finally:
        session.stop()


def test_a_log_directory_of_another_cluster_is_refused(place: Path) -> None:
    session = pg.start(pg.system(place / "one", layout=Layout(log=str(place / "log"))))
    session.stop()
    error = refused(pg.system(place / "two", layout=Layout(log=str(place / "log"))))
    assert str(place / "one") in error.cause


def test_a_server_that_is_killed_is_noticed_and_its_directory_can_be_used_again(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    session.query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
    sockets = pg.sockets(session)
    os.kill(pg.pid_of(session), signal.SIGKILL)
    assert pg.eventually(lambda: not session.alive())
    with pytest.raises(FailureError):
        session.query("SELECT 1")
    assert pg.eventually(lambda: session.last_words().startswith("killed by SIGKILL"))
    session.stop()
    session.stop()
    assert not sockets.exists()
    assert pg.eventually(lambda: not processes.working_in(place / "d" / "cluster"))
    session = pg.start(pg.system(place / "d"))
    try:
        assert session.query("SELECT n FROM kept") == [("7",)]
    finally:
        session.stop()


def test_a_killed_server_leaves_no_shared_memory(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    names = register.entries()[0].shared
    files = [Path(name) for name in names if name.startswith("/")]
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

        assert pg.eventually(answers)
    finally:
        session.stop()


def test_a_server_killed_before_its_log_was_moved_recovers_first(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    session.query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
    os.kill(pg.pid_of(session), signal.SIGKILL)
    session.stop()
    assert pg.eventually(lambda: not processes.working_in(place / "d" / "cluster"))
    session = pg.start(pg.system(place / "d", layout=Layout(log=str(place / "log"))))
    try:
        assert session.query("SELECT n FROM kept") == [("7",)]
    finally:
        session.stop()


def test_a_log_that_was_lost_after_a_crash_is_said_to_be_lost(place: Path) -> None:
    wanted = pg.system(place / "d", layout=Layout(log=str(place / "memory")))
    session = pg.start(wanted)
    os.kill(pg.pid_of(session), signal.SIGKILL)
    session.stop()
    assert pg.eventually(lambda: not processes.working_in(place / "d" / "cluster"))
    shutil.rmtree(place / "memory")
    with pytest.raises(FailureError) as caught:
        pg.start(wanted)
    assert "no longer" in caught.value.cause


@pytest.mark.parametrize("pid", ["999999999", "1", "ours"])
def test_a_stale_pid_file_is_no_obstacle(place: Path, pid: str) -> None:
    """Its process is dead, or its number was given to another process since, here even to one of the same user."""
    session = pg.start(pg.system(place / "d"))
    session.stop()
    number = os.getpid() if pid == "ours" else pid
    (place / "d/cluster/postmaster.pid").write_text(f"{number}\n{place}/d/cluster\n1\n5432\n/tmp\n\n  1 1\nready   \n")
    session = pg.start(pg.system(place / "d"))
    assert session.alive()
    session.stop()


def test_a_server_that_cannot_start_says_why_in_its_own_words(place: Path) -> None:
    wanted = pg.system(place / "d", settings={"shared_preload_libraries": "no_such_library"})
    with pytest.raises(FailureError) as caught:
        pg.start(wanted)
    assert "no_such_library" in caught.value.cause
    assert register.entries() == []
    session = pg.start(pg.system(place / "d"))
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_device_that_fills_while_the_cluster_is_made_is_named(place: Path) -> None:
    small = place / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("mounting is forbidden here")
    try:
        with pytest.raises(FailureError) as caught:
            pg.start(pg.system(small / "d"))
        assert "No space left on device" in caught.value.cause
        assert not (small / "d" / "cluster.new").exists()
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_temporary_directory_with_a_long_name_is_not_used_for_sockets(place: Path, monkeypatch) -> None:
    long = place / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    session = pg.start(pg.system(place / "d"))
    try:
        assert len(str(pg.sockets(session))) < 80
    finally:
        session.stop()


def test_an_interrupt_during_the_start_leaves_nothing_running(place: Path) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(pg.SOURCE)!r})
from ironbench import engines
from ironbench.model.system import Layout, System
system = System("postgres", "test", layout=Layout(data={str(place / "d")!r}))
engine = engines.get("postgres")
print("go", flush=True)
engine.start(engine.validated(system, 4)[0], engine.validated(system, 4)[1], 4)
"""
    for wait_s in (0.05, 0.4, 0.8):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child.stdout.readline()
        timer = threading.Timer(wait_s, child.send_signal, [signal.SIGINT])
        timer.start()
        child.wait(60)
        timer.join()
        child.stdout.close()
        assert pg.eventually(lambda: not processes.working_in(place / "d" / "cluster"))
        assert pg.eventually(lambda: register.entries() == [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another identity")
@pytest.mark.parametrize("forbidden", [{identity.NAMESPACE}, {identity.NAMESPACE, identity.UNPRIVILEGED_READER}])
def test_root_finds_another_identity_when_user_namespaces_are_forbidden(place, monkeypatch, forbidden) -> None:
    for folder in (place.parent, place):
        folder.chmod(0o755)
    chosen = identity.choose(installation.find().program("postgres"), "PostgreSQL", frozenset(forbidden))
    monkeypatch.setattr(identity, "choose", lambda *_: chosen)
    assert chosen.mechanism.startswith("user nobody")
    wanted = pg.system(place / "d", layout=Layout(log=str(place / "l"), temp=str(place / "t")))
    session = pg.start(wanted)
    try:
        assert session.facts()["runs_as"] == chosen.mechanism
        session.query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
    finally:
        session.stop()
    monkeypatch.undo()
    session = pg.start(wanted)
    try:
        assert session.facts()["runs_as"] == identity.NAMESPACE
        assert session.query("SELECT n FROM kept") == [("7",)]
    finally:
        session.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another identity")
def test_root_without_any_identity_is_told_what_to_do() -> None:
    every = frozenset({identity.NAMESPACE, identity.UNPRIVILEGED, identity.UNPRIVILEGED_READER})
    with pytest.raises(FailureError) as caught:
        identity.choose(installation.find().program("postgres"), "PostgreSQL", every)
    assert "ordinary user" in caught.value.hint


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    checked, secrets = engines.get("postgres").validated(System("postgres", "t", dsn=f"host=127.0.0.1 port={port}"), 1)
    with pytest.raises(FailureError) as caught:
        engines.get("postgres").start(checked, secrets, 1)
    assert str(port) in str(caught.value)


def test_a_wrong_password_is_your_input_and_stays_secret(raw_server: RawServer) -> None:
    dsn = f"host=127.0.0.1 port={raw_server.port} user=scram_user dbname=postgres"
    engine = engines.get("postgres")
    checked, secrets = engine.validated(System("postgres", "t", dsn=f"{dsn} password=hidden"), 1)
    with pytest.raises(InputError) as caught:
        engine.start(checked, secrets, 1)
    assert "scram_user" in str(caught.value)
    assert "hidden" not in f"{caught.value} {caught.value.hint}"
    checked, secrets = engine.validated(System("postgres", "t", dsn=f"{dsn} password='{PASSWORD}'"), 1)
    session = engine.start(checked, secrets, 1)
    assert PASSWORD not in repr(session.facts())
    assert session.target()["connection"]["password"] == PASSWORD
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
