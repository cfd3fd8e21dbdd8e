"""An idealised part still does its work, fits into memory, and leaves nothing there."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import own_server as pg
import pytest
from patience import eventually

from ironbench import engines
from ironbench.engines import ideal
from ironbench.engines.cleanup import cleanup
from ironbench.errors import InputError
from ironbench.host import register
from ironbench.model.system import Layout, System

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("own_register")]


def test_the_log_is_in_memory_and_synced_and_gone_with_the_server(tmp_path: Path) -> None:
    wanted = pg.system(tmp_path / "d", ideal=("log",))
    for _ in range(2):  # the second start finds a cluster whose WAL is gone
        session = pg.start(wanted)
        log = Path(session.directories()["log"])
        assert ideal.root(str(tmp_path / "d")) in log.parents
        assert session.query("show fsync") == [("on",)]
        before = _log_syncs(session)
        session.query("create table if not exists t (a int)")
        session.query("insert into t values (1)")
        session.query("select pg_stat_force_next_flush()")
        assert _log_syncs(session) > before
        session.stop()
        assert not ideal.root(str(tmp_path / "d")).exists()
    session = pg.start(pg.system(tmp_path / "d"))
    assert ideal.MEMORY not in Path(session.directories()["log"]).parents, "back with the data"
    assert session.query("select count(*) from t") == [("2",)]
    session.stop()


def _log_syncs(session: engines.postgres.session.PostgresSession) -> int:
    (row,) = session.query("select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal'")
    return int(row[0] or 0)


def test_temporary_files_are_in_memory_and_gone_with_the_server(tmp_path: Path) -> None:
    wanted = pg.system(tmp_path / "d", ideal=("temp",), settings={"work_mem": "64kB"})
    root = ideal.root(str(tmp_path / "d"))
    for _ in range(2):
        session = pg.start(wanted)
        session.query("begin; declare c cursor for select n from generate_series(1, 200000) n order by -n; fetch c")
        assert list(root.rglob("pgsql_tmp*")), "the sort spilled where the layout says"
        session.stop()
        assert not root.exists()
    session = pg.start(replace(wanted, ideal=()))
    assert session.query("select count(*) from (select n from generate_series(1, 200000) n order by -n)") == [
        ("200000",)
    ]
    session.stop()


def test_the_cache_is_larger_than_the_data(tmp_path: Path) -> None:
    session = pg.start(pg.system(tmp_path / "d"))
    session.query("create table t as select n, repeat('x', 1000) as filler from generate_series(1, 200000) n")
    session.stop()
    session = pg.start(pg.system(tmp_path / "d", ideal=("data",), settings={"shared_buffers": "1MB"}))
    rows = session.query(
        "select pg_size_bytes(current_setting('shared_buffers')) > 1.2 * pg_database_size(current_database())"
    )
    session.stop()
    assert rows == [("t",)]


@pytest.mark.long
def test_nothing_stays_in_memory_after_sigkill(tmp_path: Path) -> None:
    with pg.Parent(tmp_path / "d", ideal=("log", "temp")) as parent:
        assert ideal.root(str(tmp_path / "d")).exists()
        parent.kill(signal.SIGKILL)
        assert eventually(lambda: not parent.guard.alive())
        assert not ideal.root(str(tmp_path / "d")).exists()
    session = pg.start(pg.system(tmp_path / "d"))
    session.stop()


@pytest.mark.long
def test_cleanup_finds_what_the_guard_could_not_remove(tmp_path: Path) -> None:
    with pg.Parent(tmp_path / "d", ideal=("log",)) as parent:
        os.kill(parent.guard.pid, signal.SIGKILL)
        parent.kill(signal.SIGKILL)
        cleanup(remove_data=False)
        assert not ideal.root(str(tmp_path / "d")).exists()


def test_cleanup_finds_what_was_made_before_it_was_noted(tmp_path: Path) -> None:
    ideal.claim(str(tmp_path / "d"))
    assert str(ideal.root(str(tmp_path / "d"))) in cleanup(remove_data=False).removed
    assert not ideal.root(str(tmp_path / "d")).exists()


def test_cleanup_leaves_what_is_used(tmp_path: Path) -> None:
    session = pg.start(pg.system(tmp_path / "d", ideal=("log",)))
    for entry in register.entries():
        register.path_of(entry).rename(register.path_of(entry).with_suffix(".hidden"))
    cleanup(remove_data=False)
    assert ideal.root(str(tmp_path / "d")).exists()
    for path in register.directory().glob("*.hidden"):
        path.rename(path.with_suffix(".json"))
    session.stop()


def test_too_little_memory_is_told_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ideal, "available_bytes", lambda: 500 << 20)
    with pytest.raises(InputError, match=r"needs 1\.\d+.GiB of memory"):
        engines.get("postgres").validated(pg.system(tmp_path / "d", ideal=("log",)), 4)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("engine", "part"), [("sqlite", "log"), ("sqlite", "data"), ("sqlite", "client"), ("null", "log")]
)
def test_an_engine_that_cannot_says_why(engine: str, part: str) -> None:
    with pytest.raises(InputError, match=rf"--ideal {part}"):
        engines.get(engine).validated(System(engine, "x", ideal=(part,)), 1)


def test_a_running_server_is_not_made_ideal() -> None:
    with pytest.raises(InputError, match="does not configure existing servers"):
        engines.get("postgres").validated(System("postgres", "x", dsn="host=/tmp", ideal=("log",)), 1)


def test_sqlite_keeps_its_spills_in_memory(tmp_path: Path) -> None:
    system = System("sqlite", "x", layout=Layout(str(tmp_path / "d")), ideal=("temp",))
    found, _ = engines.get("sqlite").validated(system, 1)
    assert found.settings["temp_store"] == "memory"


def test_a_limit_on_all_memory_grows_by_what_the_part_takes(tmp_path: Path) -> None:
    limited = pg.system(tmp_path / "d", ideal=("log",), memory_total_bytes=1 << 30, settings={"max_wal_size": "512MB"})
    found, _ = engines.get("postgres").validated(limited, 4)
    assert found.memory_total_bytes == (1 << 30) + (640 << 20)
    again, _ = engines.get("postgres").validated(replace(limited, ideal=("data",)), 4)
    assert again.memory_total_bytes is None
