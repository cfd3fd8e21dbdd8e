"""The DuckDB engine: its process, file, limits and facts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import own_server
import pytest

from ironbench import engines
from ironbench.engines import cleanup
from ironbench.engines.duckdb import process as duckdb_process
from ironbench.engines.duckdb.session import FILE, DuckdbSession
from ironbench.errors import EngineDiedError, FailureError, InputError
from ironbench.host import processes, register
from ironbench.model.system import Layout, System
from ironbench.trial.drive import caches
from ironbench.trial.load import tables
from ironbench.workloads.tpch import streams

pytestmark = pytest.mark.live

LONG = "select count(*) from range(1000000) a, range(1000000) b where a.range * b.range % 7 = 3"


def start(data: Path, **told: object) -> DuckdbSession:
    return own_server.start(own_server.system(data, "duckdb", **told))  # type: ignore[return-value]


@pytest.fixture
def session(place: Path) -> Iterator[DuckdbSession]:
    session = start(place / "d")
    yield session
    session.stop()


def test_a_file_is_made_used_and_kept(place: Path) -> None:
    session = start(place / "d")
    session.query("create table t (n integer, s varchar, d decimal(15,2))")
    assert session.copy_in("COPY t (n, s, d) FROM STDIN", b"1\ta b\t1.50\n2\t\\N\t-0.01\n") == 2
    session.stop()
    session.stop()
    assert not session.alive()
    assert not (place / "d" / f"{FILE}.wal").exists()
    session = start(place / "d")
    assert session.query("select * from t order by n") == [("1", "a b", "1.50"), ("2", None, "-0.01")]
    session.stop()


def test_a_mistake_is_answered_and_the_connection_goes_on(session: DuckdbSession) -> None:
    with pytest.raises(FailureError, match="nonsense"):
        session.query("select nonsense")
    assert session.query("select 1") == [("1",)]


def test_connections_work_at_the_same_time_on_the_same_data(session: DuckdbSession) -> None:
    session.query("create table t as select range as n from range(1000)")
    connections = [session.line() for _ in range(4)]
    answers: list[str | None] = []
    threads = [
        threading.Thread(target=lambda one=one: answers.append(one.query("select sum(n) from t")[0][0]))
        for one in connections
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["499500"] * 4


def test_a_statement_can_be_cancelled_from_another_thread(session: DuckdbSession) -> None:
    connection = session.line()
    threading.Timer(0.2, connection.cancel).start()
    with pytest.raises(FailureError, match="INTERRUPT") as cancelled:
        connection.query(LONG)
    assert cancelled.value.sqlstate == "57014"
    assert connection.query("select 2") == [("2",)]


def test_a_measured_statement_tells_its_rows_and_times_on_our_clock(session: DuckdbSession) -> None:
    before_s = time.perf_counter()
    rows, submitted_s, answered_s = session.line().measure("select * from range(5000)")
    assert rows == 5000
    assert before_s < submitted_s < answered_s < time.perf_counter()


def test_a_query_that_is_refused_fails_alone_and_the_stream_goes_on(session: DuckdbSession) -> None:
    session.query("set memory_limit = '32MB'; set max_temp_directory_size = '0B'")
    large = "select count(*) from (select distinct range from range(10000000))"
    line = session.line()
    texts = {"q01": "select 1", "q02": "select nonsense", "q03": large, "q04": "select 4"}
    stream = streams.Stream(1, [streams.Query(name, sql, line, 60.0) for name, sql in texts.items()])
    streams.run([stream], lambda: False, lambda done, running: None)
    errors = {one.name: one.error for one in stream.ran}
    assert errors == {"q01": "", "q02": "Binder", "q03": "OutOfMemory", "q04": ""}
    line.close()


def test_an_announced_statement_is_measured_or_let_go(session: DuckdbSession) -> None:
    line = session.line()
    assert line.measure_before("select * from range(1)", "select * from range(2)")[0] == 1
    assert line.measure_before("select * from range(2)", LONG)[0] == 2
    assert line.measure("select * from range(3)")[0] == 3
    with pytest.raises(FailureError, match="nonsense"):
        line.measure_before("select nonsense", "select * from range(4)")
    session.line().cancel()
    line.cancel()
    line.interrupt(line._answered)
    assert line.measure_before("select * from range(4)", LONG)[0] == 4
    line.close()
    begin_s = time.perf_counter()
    session.stop()
    assert time.perf_counter() - begin_s < 4.0


@pytest.mark.long
def test_a_cancellation_that_comes_with_the_answer_spares_the_announced_statement(
    session: DuckdbSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CancelledWithEachAnswer(duckdb_process.DuckdbConnection):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_answered" and value:
                self.cancel()

    monkeypatch.setattr(duckdb_process, "DuckdbConnection", CancelledWithEachAnswer)
    line, many = session.line(), "select * from range(20000000)"
    assert isinstance(line, CancelledWithEachAnswer)
    assert line.measure_before("select 1", many)[0] == 1
    assert line.measure(many)[0] == 20_000_000


def test_a_process_that_is_killed_says_so_and_loses_no_commit(place: Path) -> None:
    session = start(place / "d")
    session.query("create table t as select 1 as n")
    os.kill(session.processes()[0], signal.SIGKILL)
    with pytest.raises(EngineDiedError, match="SIGKILL"):
        session.query("select 1")
    assert not session.alive()
    session.stop()
    session = start(place / "d")
    assert session.query("select n from t") == [("1",)]
    session.stop()


def test_limits_are_those_that_were_asked_for(place: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    layout = Layout(str(place / "d"), str(place / "t"))
    session = start(place / "d", layout=layout, memory_bytes=200 << 20, parallelism=1, server_cpus=(cpu,))
    settings = session.facts()["settings"]
    assert settings["memory_limit"] == "200.0 MiB" and settings["threads"] == "1"
    assert settings["temp_directory"].startswith(str(place / "t"))
    assert os.sched_getaffinity(session.processes()[0]) == {cpu}
    session.stop()


def test_compression_can_be_turned_off(place: Path) -> None:
    sizes = []
    for name, compression in (("a", "auto"), ("b", "uncompressed")):
        session = start(place / name, settings={"force_compression": compression})
        session.query("create table t as select 7 as n, 'the same text in every row' as s from range(200000)")
        session.query("checkpoint")
        sizes.append((place / name / FILE).stat().st_size)
        session.stop()
    assert sizes[1] > 3 * sizes[0]


def test_settings_are_checked_before_anything_is_made(place: Path) -> None:
    for settings, hint in (({"force_compresion": "auto"}, "force_compression"), ({"temp_directory": "/x"}, "")):
        with pytest.raises(InputError) as refused:
            start(place / "d", settings=settings)
        assert hint in refused.value.hint
    with pytest.raises(InputError, match="--memory"):
        start(place / "d", settings={"memory_limit": "1GB"}, memory_bytes=1 << 30)
    with pytest.raises(InputError, match="next to the data file"):
        start(place / "d", layout=Layout(str(place / "d"), None, str(place / "l")))
    assert not (place / "d").exists()


def test_a_setting_is_the_same_in_any_case(place: Path) -> None:
    engine = engines.get("duckdb")

    def validated(**told: object) -> System:
        return engine.validated(System("duckdb", "t", layout=Layout(str(place / "d")), **told), 4)[0]  # type: ignore[arg-type]

    shaped = validated(settings={"Force_Compression": "uncompressed"})
    assert engine.loading_system(shaped, place / "snapshot").settings == {"force_compression": "uncompressed"}
    with pytest.raises(InputError, match="the layout sets the directory for temporary files"):
        validated(settings={"TEMP_DIRECTORY": "/tmp"})
    with pytest.raises(InputError, match="sets the same value"):
        validated(settings={"Threads": "1"}, parallelism=2)


def test_a_restart_empties_its_memory_and_keeps_its_data(session: DuckdbSession) -> None:
    session.query("create table t as select 1 as n")
    first = session.processes()
    session.restart()
    assert session.query("select n from t") == [("1",)]
    assert session.processes() != first


def test_warm_means_that_every_column_was_read(session: DuckdbSession) -> None:
    session.query("create table t as select hash(range) as n, md5(range::varchar) as s from range(200000)")
    session.restart()
    system = System("duckdb", "test", layout=Layout(session.directories()["data"]))
    session.query('create schema "in hand"')
    session.query('create table "in hand"."or""der" as select 1 as n')
    assert caches.warm(session, system, ("t",)) == "files read and every column of 1 table was read"
    assert caches.warm(session, system, ()) == "files read and every column of 2 tables was read"
    assert tables.size(session, ()) == tables.size(session, ("t",))
    (held,) = session.query("select sum(memory_usage_bytes) from duckdb_memory() where tag = 'BASE_TABLE'")[0]
    assert float(held or 0) > 0.8 * tables.size(session, ("t",))


def test_a_snapshot_brings_the_file_back(place: Path) -> None:
    engine = engines.get("duckdb")
    session = start(place / "d")
    session.query("create table t as select 1 as n")
    session.stop()
    system = System("duckdb", "test", layout=Layout(str(place / "d")))
    engine.snapshot(system, place / "snapshot")
    session = start(place / "d")
    session.query("update t set n = 2")
    session.stop()
    engine.restore(system, place / "snapshot")
    session = start(place / "d")
    assert session.query("select n from t") == [("1",)]
    session.stop()


def test_its_process_goes_when_its_owner_is_killed(place: Path) -> None:
    code = (
        "import sys, time; from ironbench import engines; from ironbench.model.system import Layout, System; "
        "engine = engines.get('duckdb'); system = System('duckdb', 't', layout=Layout(sys.argv[1])); "
        "session = engine.start(*engine.validated(system, 1), 1); "
        "session.query('create table t as select 1 as n'); "
        "sys.stdout.write(f'{session.processes()[0]}\\n'); sys.stdout.flush(); time.sleep(100)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(place / "d")], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    one = processes.identify(int(owner.stdout.readline()))
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert one is not None and one.wait(30.0)
    cleanup.cleanup(remove_data=False)
    assert not any(entry.data == str(place / "d") for entry in register.entries())
    session = start(place / "d")
    assert session.query("select n from t") == [("1",)]
    session.stop()


def test_nothing_outlives_the_session(place: Path) -> None:
    session = start(place / "d")
    one = processes.identify(session.processes()[0])
    assert one is not None
    assert any(entry.server == one for entry in register.entries())
    session.stop()
    assert not one.alive()
    assert not any(entry.data == str(place / "d") for entry in register.entries())
