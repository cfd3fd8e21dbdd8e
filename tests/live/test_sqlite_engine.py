"""The SQLite engine itself: its file, pragmas and facts."""

from functools import partial
from pathlib import Path

import own_server
import pytest
from own_server import start

from ironbench import engines
from ironbench.errors import FailureError, InputError
from ironbench.model.system import Layout, System
from ironbench.workloads.tpch import refresh, streams

pytestmark = pytest.mark.live
system = partial(own_server.system, engine="sqlite")


def test_a_file_is_made_used_and_kept(place: Path) -> None:
    session = start(system(place / "d"))
    session.query("CREATE TABLE t (n INTEGER, s TEXT)")
    assert session.copy_in("COPY t FROM STDIN", b"1\ta\n2\t\\N\n") == 2
    session.stop()
    session.stop()
    assert not session.alive()
    session = start(system(place / "d"))
    assert session.query("SELECT * FROM t ORDER BY n") == [("1", "a"), ("2", None)]
    assert session.alive()
    session.stop()


def test_a_query_that_is_refused_fails_alone_and_the_stream_goes_on(place: Path) -> None:
    session = start(system(place / "d"))
    line = session.line()
    texts = {"q01": "select 1", "q02": "select nonsense", "q03": "select 3"}
    stream = streams.Stream(1, [streams.Query(name, sql, line, 60.0) for name, sql in texts.items()])
    streams.run([stream], lambda: False, lambda done, running: None)
    assert {one.name: one.error for one in stream.ran} == {"q01": "", "q02": "SQLITE_ERROR", "q03": ""}
    line.close()
    session.stop()


def test_a_refresh_function_that_fails_leaves_no_transaction_open(place: Path) -> None:
    session = start(system(place / "d"))
    line = session.line()
    one = refresh.RefreshSet(1, (refresh.RefreshPiece(b"", b"", 1, 9),))
    with pytest.raises(FailureError, match="no such table: lineitem"):
        refresh.delete(line, one)
    assert line.query("SELECT 1") == [("1",)]
    line.query("BEGIN; COMMIT")
    line.close()
    session.stop()


def test_the_log_is_written_ahead_and_every_commit_is_synced_by_default(place: Path) -> None:
    session = start(system(place / "d"))
    facts = session.facts()
    assert facts["settings"]["journal_mode"] == "wal"
    assert facts["settings"]["synchronous"] == "2"
    assert facts["version"].startswith("3.")
    assert facts["build"]
    session.stop()


def test_pragmas_reach_our_connection_and_the_trial_s(place: Path) -> None:
    session = start(system(place / "d", settings={"Synchronous".lower(): "NORMAL", "page_size": "8192"}))
    assert session.query("PRAGMA synchronous") == [("1",)]
    assert session.query("PRAGMA page_size") == [("8192",)]
    target = session.target()
    assert target["kind"] == "sqlite"
    assert target["pragmas"][0] == "PRAGMA page_size=8192"
    assert "PRAGMA synchronous=normal" in target["pragmas"]
    assert session.query("SELECT 1") == [("1",)]
    session.stop()


def test_the_cache_is_shared_out_among_the_clients(place: Path) -> None:
    session = start(system(place / "d", memory_bytes=64 << 20), clients=4)
    assert session.query("PRAGMA cache_size") == [(str(-16 * 1024),)]
    session.stop()


def test_a_file_with_other_pages_is_refused(place: Path) -> None:
    session = start(system(place / "d", settings={"page_size": "8192"}))
    session.query("CREATE TABLE t (n)")
    session.stop()
    with pytest.raises(InputError, match="pages of 8192 bytes"):
        start(system(place / "d", settings={"page_size": "4096"}))
    start(system(place / "d")).stop()


def test_one_ironbench_at_a_time_uses_a_file(place: Path) -> None:
    session = start(system(place / "d"))
    with pytest.raises(InputError, match="another ironbench process uses this directory"):
        start(system(place / "d"))
    session.stop()
    start(system(place / "d")).stop()


@pytest.mark.parametrize(
    ("told", "cause", "hint"),
    [
        ({"settings": {"synchronus": "off"}}, "not a pragma that can be set", "did you mean synchronous"),
        ({"settings": {"journal_mode": "wall"}}, "invalid value 'wall'", "did you mean wal"),
        ({"settings": {"page_size": "5000"}}, "power of two", ""),
        ({"settings": {"mmap_size": "1GB"}}, "not an integer", ""),
        ({"settings": {"cache_size": "1"}, "memory_bytes": 1 << 20}, "sets the same value", ""),
        ({"dsn": "host=h"}, "SQLite is not a server", ""),
        ({"layout": Layout(log="/tmp/x")}, "next to the data file", ""),
        ({"layout": Layout(temp="/tmp/x")}, "next to the data file", ""),
    ],
)
def test_a_mistake_is_refused_before_the_file_is_made(tmp_path: Path, told, cause: str, hint: str) -> None:
    wanted = System(**({"engine": "sqlite", "label": "t", "layout": Layout(data=str(tmp_path / "d"))} | told))
    with pytest.raises(InputError) as caught:
        engines.get("sqlite").validated(wanted, 1)
    assert cause in caught.value.cause
    assert hint in caught.value.hint
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("clients", [0, 100_000])
def test_a_number_of_clients_beyond_threads_is_refused(tmp_path: Path, clients: int) -> None:
    with pytest.raises(InputError, match=f"{clients} clients"):
        engines.get("sqlite").validated(system(tmp_path / "d"), clients)
