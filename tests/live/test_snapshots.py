"""Every trial starts from the same data: loaded once, stored, copied back, and never partial."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import own_server as pg
import pytest
from factories import rarely_mariadb, require_installed
from patience import eventually

from ironbench import engines, workloads
from ironbench.engines.cleanup import cleanup, lines_of
from ironbench.errors import FailureError, InputError
from ironbench.host import copies
from ironbench.host import data_dirs as places
from ironbench.model.secrets import Secrets
from ironbench.model.system import Cell, Choice, Layout, Load, Setup, System
from ironbench.printer import Printer
from ironbench.trial.load import restore, snapshot
from ironbench.trial.load.source import DataSource

pytestmark = pytest.mark.live

SOURCE = Path(__file__).parents[2] / "src"
OLDER = "wheel:16"


@pytest.fixture(autouse=True)
def own_cache(own_register: Path, monkeypatch: pytest.MonkeyPatch, place: Path) -> Path:
    monkeypatch.setenv("IRONBENCH_DATA", str(place / "cache"))
    return place / "cache" / "snapshots"


def setup(place: Path, engine: str = "postgres", workload: str = "tpcb-like", **told: object) -> Setup:
    require_installed(engine)
    layout = replace(told.pop("layout", Layout()), data=str(place / "data"))
    system = System(engine, "test", layout=layout, **told)
    system, _ = engines.get(engine).validated(system, 4)
    choice = Choice(workload, workloads.get(workload).validated({}))
    return Setup(Cell("clients=2", Load(clients=2, duration_s=1.0)), system, choice)


def ready(wanted: Setup) -> tuple[DataSource, str]:
    """Returns the snapshot and the output."""
    said = io.StringIO()
    return snapshot.source_ready(wanted, Secrets(), Printer(stderr=said)), said.getvalue()


def contents(wanted: Setup) -> str:
    """Returns the fingerprint of all rows of all tables, including the system catalogue of relations."""
    with engines.running(wanted.system, Secrets(), 4) as session:
        rows = [session.query(f"select * from {t} order by 1, 2, 3") for t in ("pgbench_branches", "pgbench_history")]
        rows += [session.query("select count(*), sum(aid), sum(abalance), min(abalance) from pgbench_accounts")]
        return hashlib.sha256(repr(rows).encode()).hexdigest()


def spoil(wanted: Setup) -> None:
    with engines.running(wanted.system, Secrets(), 4) as session:
        session.query("update pgbench_accounts set abalance = 7")
        session.query("delete from pgbench_branches")
        session.query("insert into pgbench_history values (1, 1, 1, 1, '2020-01-01', 'x')")
        session.query("create table another (x int)")


@pytest.mark.parametrize("engine", ["postgres", "sqlite", pytest.param("mariadb", marks=pytest.mark.long)])
def test_what_a_trial_changed_is_undone(place: Path, engine: str) -> None:
    wanted = setup(place, engine)
    kept, _ = ready(wanted)
    assert "pgbench" in restore.restored(wanted, kept)["data"]
    first = contents(wanted)
    for _ in range(1 if engine == "mariadb" else 2):
        spoil(wanted)
        assert contents(wanted) != first
        restore.restored(wanted, kept)
        assert contents(wanted) == first
    with engines.running(wanted.system, Secrets(), 4) as session, pytest.raises(FailureError):
        session.query("select * from another")


@rarely_mariadb("postgres", "sqlite")
def test_a_later_run_finds_the_snapshot_again(place: Path, engine: str) -> None:
    wanted = setup(place, engine)
    first, said = ready(wanted)
    assert "rows/s" in said
    again, said = ready(wanted)
    assert "snapshot of" in said and "rows/s" not in said
    assert again == first


def test_a_snapshot_belongs_to_version_and_to_what_shapes_the_files_but_not_to_settings(place: Path) -> None:
    plain = ready(setup(place))[0].folder
    assert ready(setup(place, settings={"work_mem": "8MB"}, memory_bytes=64 << 20))[0].folder == plain
    assert ready(setup(place, settings={"bin": OLDER}))[0].folder != plain


def test_the_server_is_as_told_and_not_as_the_load_was(place: Path) -> None:
    wanted = setup(place, memory_bytes=64 << 20)
    restore.restored(wanted, ready(wanted)[0])
    with engines.running(wanted.system, Secrets(), 4) as session:
        told = [session.query(f"show {name}")[0][0] for name in ("fsync", "wal_level", "autovacuum", "shared_buffers")]
        counted = session.query("select sum(seq_scan + idx_scan) from pg_stat_user_tables")[0][0]
    assert told == ["on", "replica", "on", "64MB"]
    assert int(counted or 0) == 0  # usage statistics start from zero


def test_log_and_temp_go_where_the_layout_wants_them_at_every_restore(place: Path) -> None:
    for number in (1, 2):
        layout = Layout(log=str(place / f"log{number}"), temp=str(place / f"temp{number}"))
        wanted = setup(place, layout=layout)
        kept, _ = ready(wanted)
        for _ in range(2):
            restore.restored(wanted, kept)
            with engines.running(wanted.system, Secrets(), 4) as session:
                directories = session.directories()
                assert directories["log"] == str(place / f"log{number}" / "wal")
                session.query("set work_mem = '64kB'")
                session.query("select count(*) from (select * from pgbench_accounts order by filler, aid offset 0) x")
                assert any((place / f"temp{number}" / "temp").iterdir())
    assert not (place / "log1" / "wal").exists()  # deleted with its cluster


@pytest.mark.long
def test_a_system_with_log_and_temp_of_its_own_can_be_copied_and_put_back(place: Path) -> None:
    layout = Layout(log=str(place / "log"), temp=str(place / "temp"))
    wanted = setup(place, layout=layout)
    engine = engines.get("postgres")
    restore.restored(wanted, ready(wanted)[0])
    with engines.running(wanted.system, Secrets(), 4) as session:
        session.query("create table mine as select 42 as answer")
    engine.snapshot(wanted.system, place / "copy")
    for other in (wanted, setup(place), wanted):
        engine.restore(other.system, place / "copy")
        with engines.running(other.system, Secrets(), 4) as session:
            assert session.query("select * from mine") == [("42",)]
            session.query("drop table mine")


@rarely_mariadb("postgres", "sqlite")
def test_what_no_snapshot_made_is_kept_aside(place: Path, engine: str) -> None:
    wanted = setup(place, engine)
    with engines.running(wanted.system, Secrets(), 4) as session:
        session.query("create table mine (x int)")
    restore.restored(wanted, ready(wanted)[0])
    kept = list((place / "data").glob("*.kept-1"))
    assert len(kept) == 1
    restore.restored(wanted, ready(wanted)[0])
    assert list((place / "data").glob("*.kept-*")) == kept
    kept[0].rename(place / "data" / ("moved.sqlite" if engine == "sqlite" else "moved"))


@rarely_mariadb("postgres")
def test_a_stranger_s_directory_is_not_touched(place: Path, engine: str) -> None:
    wanted = setup(place, engine)
    kept, _ = ready(wanted)
    (place / "data").mkdir()
    (place / "data" / "letter.txt").write_text("dear aunt")
    with pytest.raises(InputError, match="ironbench did not create"):
        restore.restored(wanted, kept)
    assert (place / "data" / "letter.txt").read_text() == "dear aunt"


@rarely_mariadb("postgres")
def test_a_running_server_s_files_are_neither_copied_nor_replaced(place: Path, engine: str) -> None:
    wanted = setup(place, engine)
    kept, _ = ready(wanted)
    restore.restored(wanted, kept)
    with engines.running(wanted.system, Secrets(), 4):
        for act in (
            lambda: restore.restored(wanted, kept),
            lambda: engines.get(engine).snapshot(wanted.system, place / "c"),
        ):
            with pytest.raises(InputError, match=r"uses this directory|in use by"):
                act()


def test_a_server_that_was_killed_is_not_copied(place: Path) -> None:
    wanted = setup(place)
    restore.restored(wanted, ready(wanted)[0])
    session = engines.get("postgres").start(wanted.system, Secrets(), 4)
    os.kill(pg.pid_of(session), signal.SIGKILL)
    session.stop()
    with pytest.raises(FailureError, match="not shut down cleanly"):
        engines.get("postgres").snapshot(wanted.system, place / "c")
    assert not (place / "c").exists()


@pytest.mark.long
def test_a_snapshot_whose_files_were_changed_is_made_anew(place: Path) -> None:
    wanted = setup(place)
    kept, _ = ready(wanted)
    assert kept.folder is not None
    victim = max((kept.folder / "cluster").rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
    victim.write_bytes(b"")
    assert "rows/s" in ready(wanted)[1]
    restore.restored(wanted, kept)
    contents(wanted)


LOADER = """
import sys
sys.path[:0] = [{source!r}, {tests!r}, {tests!r} + "/.."]
from pathlib import Path
from test_snapshots import ready, setup
print("begin", flush=True)
ready(setup(Path({place!r}), {engine!r}))
"""


@pytest.mark.parametrize(
    ("engine", "delay_s"),
    [
        pytest.param(engine, delay_s, marks=() if delay_s == often else pytest.mark.long)
        for engine, often in (("postgres", 0.7), ("sqlite", 0.3), ("mariadb", None))
        for delay_s in (0.3, 0.7, 1.0, 1.3)
    ],
)
def test_a_killed_load_leaves_nothing_half(place: Path, own_cache: Path, engine: str, delay_s: float) -> None:
    code = LOADER.format(source=str(SOURCE), tests=str(Path(__file__).parent), place=str(place), engine=engine)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begin\n"
        time.sleep(delay_s)
        child.kill()
    assert eventually(lambda: not _initdb_works(own_cache), 1), "it would remove what the next one makes there"
    assert eventually(lambda: not _still_loading(own_cache), 30)
    wanted = setup(place, engine)
    kept, _ = ready(wanted)
    restore.restored(wanted, kept)
    with engines.running(wanted.system, Secrets(), 4) as session:
        assert session.query("select count(*), sum(abalance) from pgbench_accounts") == [("100000", "0")]
    left = {path.name for path in own_cache.iterdir()} - {kept.folder.name, f"{kept.folder.name}.lock"}
    assert left == set()


def _initdb_works(cache: Path) -> bool:
    def command(process: Path) -> bytes:
        with contextlib.suppress(OSError):
            return (process / "cmdline").read_bytes()
        return b""

    commands = [command(process) for process in Path("/proc").glob("[0-9]*")]
    return any(b"/initdb\0" in line and str(cache).encode() in line for line in commands)


def _still_loading(cache: Path) -> bool:
    for folder in cache.glob("*.load"):
        try:
            os.close(places.lock(folder))
        except InputError:
            return True
    return False


def test_a_full_disk_is_said_before_anything_is_loaded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironbench.host.space.free_bytes", lambda path: 1 << 20)
    with pytest.raises(InputError, match="are free in this directory"):
        ready(setup(place))
    assert list((place / "cache" / "snapshots").glob("*.load")) == []


def test_a_disk_that_fills_while_copying_leaves_no_half_copy(place: Path, small_disk: Callable[[int], Path]) -> None:
    disk = small_disk(10)
    wanted = setup(place)
    kept, _ = ready(wanted)
    assert kept.folder is not None
    with pytest.raises(FailureError, match="No space left on device") as told:
        copies.tree(kept.folder, disk / "copy")
    assert "larger device" in told.value.hint
    assert list(disk.iterdir()) == []
    full = replace(wanted, system=replace(wanted.system, layout=Layout(str(disk))))
    with pytest.raises(InputError, match="are free in this directory"):
        restore.restored(full, kept)


def test_holes_stay_holes_and_the_copy_is_the_same(tmp_path: Path) -> None:
    source = tmp_path / "sparse"
    with source.open("wb") as file:
        file.seek(50 << 20)
        file.write(b"x" * 5000)
        file.truncate(100 << 20)
    done = copies.file(source, tmp_path / "twin")
    assert (tmp_path / "twin").read_bytes() == source.read_bytes()
    assert done.bytes < 1 << 20
    assert copies.size(tmp_path / "twin") <= 1 << 20


def test_restoring_is_rare_only_where_that_is_harmless_and_saves_time(place: Path) -> None:
    kept = DataSource("snapshot", "k", place, 7_000_000_000)
    for name, expected in (("tpcb-like", "trial"), ("select-only", "lab"), ("igen-oltp", "block")):
        wanted = setup(place, workload=name)
        assert restore.restore_frequency(wanted, kept, "auto") == expected
        long = replace(wanted, cell=Cell("x", Load(duration_s=1000.0)))
        assert restore.restore_frequency(long, kept, "auto") == "trial"
        assert restore.restore_frequency(wanted, kept, "block") == "block"


@pytest.mark.parametrize("name", ["select-only", "igen-oltp", "vacuum", "index-build", "backup", "restore", "tpch"])
def test_work_that_has_no_length_always_starts_from_a_copy(name: str, place: Path) -> None:
    kept = DataSource("snapshot", "k", place, 7_000_000_000)
    endless = replace(setup(place, workload=name), cell=Cell("x", Load(duration_s=None)))
    assert restore.restore_frequency(endless, kept, "auto") == "trial"


def test_queries_alone_leave_their_data_as_they_were(place: Path) -> None:
    kept = DataSource("snapshot", "k", place, 7_000_000_000)
    for test, expected in (("stream", "lab"), ("power", "trial"), ("throughput", "trial")):
        choice = Choice("tpch", workloads.get("tpch").validated({"sf": "4", "test": test}))
        asked = replace(setup(place), choice=choice, cell=Cell("x", Load(duration_s=None)))
        assert restore.restore_frequency(asked, kept, "auto") == expected


def test_cleanup_tells_of_snapshots_and_removes_them_when_asked(place: Path, own_cache: Path) -> None:
    kept, _ = ready(setup(place, "sqlite"))
    assert kept.folder is not None
    places.release(kept.folder)
    assert str(kept.folder) in cleanup(remove_data=False).kept
    assert str(kept.folder) in cleanup(remove_data=True).removed
    assert list(own_cache.iterdir()) == []


USER = (
    LOADER
    + """
print("ready", flush=True)
sys.stdin.read()
"""
)


def test_a_snapshot_in_use_is_not_removed(place: Path, own_cache: Path) -> None:
    code = USER.format(source=str(SOURCE), tests=str(Path(__file__).parent), place=str(place), engine="sqlite")
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as user:
        assert user.stdout is not None
        assert [user.stdout.readline() for _ in range(2)] == [b"begin\n", b"ready\n"]
        (folder,) = (path for path in own_cache.iterdir() if path.is_dir())
        cleaned = cleanup(remove_data=True)
        assert cleaned.used == (str(folder),)
        assert f"kept: {folder} (in use)" in lines_of(cleaned)
        assert ready(setup(place, "sqlite"))[0].folder == folder, "others use it as well"
        places.release(folder)
        user.kill()
    assert cleanup(remove_data=True).removed == (str(folder),)


@pytest.mark.long
def test_a_snapshot_in_use_whose_files_were_changed_is_not_replaced(place: Path, own_cache: Path) -> None:
    code = USER.format(source=str(SOURCE), tests=str(Path(__file__).parent), place=str(place), engine="sqlite")
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as user:
        assert user.stdout is not None
        assert [user.stdout.readline() for _ in range(2)] == [b"begin\n", b"ready\n"]
        (folder,) = (path for path in own_cache.iterdir() if path.is_dir())
        (folder / "stray").write_text("x")
        with pytest.raises(InputError, match="another ironbench process uses"):
            ready(setup(place, "sqlite"))
        user.kill()
    assert "rows/s" in ready(setup(place, "sqlite"))[1]


def test_on_a_server_that_is_not_ours_only_what_this_process_loaded_is_loaded_anew(place: Path) -> None:
    theirs = pg.start(pg.system(place / "theirs"), clients=20)
    try:
        address = theirs.target()["connection"]
        dsn = f"host={address['host']} port={address['port']} user={address['user']} dbname={address['database']}"
        system, secrets = engines.get("postgres").validated(System("postgres", "test", dsn=dsn), 4)
        wanted = replace(setup(place), system=system)
        kept = snapshot.source_ready(wanted, secrets, Printer(stderr=io.StringIO()))
        assert kept.kind == "reload"
        theirs.query("update pgbench_accounts set abalance = 7")
        assert restore.restored(wanted, kept)["data"].startswith("loaded again")
        assert theirs.query("select sum(abalance) from pgbench_accounts") == [("0",)]
        assert restore.warnings(wanted, kept) == ()
        found = snapshot.source_ready(wanted, secrets, Printer(stderr=io.StringIO()))
        assert found.kind == "as-found"
        assert restore.restored(wanted, found) == {"data": "as found", "restored": "no"}
        assert [warning.code for warning in restore.warnings(wanted, found)] == ["data-as-found"]
    finally:
        theirs.stop()
