"""Trials on real SQLite files, in a child process: the counts match the file's contents."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlite_trial import database, plan, rows, trial

from ironbench.errors import FailureError, InputError

pytestmark = pytest.mark.live


def test_every_counted_transaction_is_in_the_file(place: Path) -> None:
    path = database(place, "CREATE TABLE t (client INTEGER, n INTEGER)")
    script = "\\set n random(1, 1000)\nINSERT INTO t VALUES (:client_id, :n);"
    told = trial(place, plan(path, script, clients=4, stop={"transactions": 250}))
    assert told["transactions"] == told["commits"] == 1000
    assert (told["failed"], told["errors"], told["io"]) == (0, {}, "blocking")
    counted = rows(path, "SELECT count(*), count(DISTINCT client), min(typeof(n)), max(typeof(n)) FROM t")
    assert counted == [("1000", "4", "integer", "integer")]


def test_a_transaction_that_fails_leaves_nothing_and_is_counted(place: Path) -> None:
    path = database(place, "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")
    script = "BEGIN;\nINSERT INTO t SELECT max(id) + 1 FROM t;\nINSERT INTO t VALUES (1);\nCOMMIT;"
    told = trial(place, plan(path, script, stop={"transactions": 10}))
    assert (told["transactions"], told["failed"]) == (0, 10)
    assert told["errors"] == {"SQLITE_CONSTRAINT_PRIMARYKEY": 10}
    assert rows(path, "SELECT count(*) FROM t") == [("1",)]


def test_contention_is_counted_and_retried_within_the_limit(place: Path) -> None:
    path = database(place, "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (0)")
    # Reading before writing makes each a candidate for SQLITE_BUSY_SNAPSHOT if another one wrote in between.
    script = "BEGIN;\nSELECT n FROM t;\n\\sleep 1 ms\nUPDATE t SET n = n + 1;\nCOMMIT;"
    compiled = plan(path, script, ("PRAGMA busy_timeout=0",), clients=4, stop={"transactions": 25}, max_tries=0)
    told = trial(place, compiled)
    assert (told["transactions"], told["failed"]) == (100, 0)
    assert rows(path, "SELECT n FROM t") == [("100",)]
    busy = sum(told["errors"].values())
    assert set(told["errors"]) <= {"SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT"}
    assert told["retries"] == busy > 0
    assert 0 < told["retried"] <= 100


def test_without_retries_contention_gives_transactions_up(place: Path) -> None:
    path = database(place, "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (0)")
    script = "BEGIN;\nSELECT n FROM t;\n\\sleep 1 ms\nUPDATE t SET n = n + 1;\nCOMMIT;"
    told = trial(place, plan(path, script, ("PRAGMA busy_timeout=0",), clients=4, stop={"transactions": 25}))
    assert told["transactions"] + told["failed"] == 100
    assert told["failed"] == sum(told["errors"].values()) > 0
    assert rows(path, "SELECT n FROM t") == [(str(told["transactions"]),)]


def test_a_row_gathered_into_variables_can_be_used_as_a_number(place: Path) -> None:
    path = database(place, "CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (41, '007')")
    script = (
        "SELECT a, b FROM t LIMIT 1 \\gset got_\n"
        "\\set next :got_a + 1\n"
        "INSERT INTO t SELECT :next, :got_b WHERE :got_b = '007' AND :next = 42;"
    )
    told = trial(place, plan(path, script, stop={"transactions": 1}))
    assert told["errors"] == {}
    assert rows(path, "SELECT a, b FROM t ORDER BY rowid DESC LIMIT 1") == [("42", "007")]


def test_statements_joined_in_one_command_all_run(place: Path) -> None:
    path = database(place, "CREATE TABLE t (a INTEGER)")
    script = "INSERT INTO t VALUES (1)\\; INSERT INTO t VALUES (2)\\; SELECT sum(a) AS total FROM t \\gset\n"
    told = trial(place, plan(path, script + "INSERT INTO t VALUES (:total);", stop={"transactions": 1}))
    assert told["errors"] == {}
    assert rows(path, "SELECT a FROM t ORDER BY a") == [("1",), ("2",), ("3",)]


def test_a_pipeline_is_refused_before_the_file_is_touched(place: Path) -> None:
    path = database(place, "CREATE TABLE t (a INTEGER)")
    with pytest.raises(InputError, match="needs a server") as refused:
        trial(place, plan(path, "\\startpipeline\nINSERT INTO t VALUES (1);\n\\endpipeline"))
    assert refused.value.hint
    assert rows(path, "SELECT count(*) FROM t") == [("0",)]


def test_a_file_that_is_not_there_is_an_error_at_the_start(place: Path) -> None:
    with pytest.raises(FailureError, match="unable to open") as failed:
        trial(place, plan(str(place / "none.db"), "SELECT 1;"))
    assert failed.value.hint == "load the data first"
    assert not (place / "none.db").exists()


def test_a_pragma_that_sqlite_does_not_take_is_the_users_input(place: Path) -> None:
    path = database(place, "CREATE TABLE t (a)")
    with pytest.raises(InputError, match="PRAGMA synchronous=;"):
        trial(place, plan(path, "SELECT 1;", ("PRAGMA synchronous=;",)))


def test_observed_files_come_back_with_the_result(place: Path) -> None:
    path = database(place, "CREATE TABLE t (a INTEGER)")
    from ironbench import _core
    from ironbench.host.job import ChildPlacement
    from ironbench.trial.drive.run import drive_in_child

    watched = [{"name": "cpu.stat", "kind": "file", "target": "/proc/stat", "period_s": 0.05}]
    compiled = plan(path, "INSERT INTO t VALUES (1);\n\\sleep 1 ms", observers=watched, stop={"duration_s": 0.3})
    result = drive_in_child(compiled, _core.Progress(), ChildPlacement(place / "log"))
    samples = result.samples["cpu.stat"]
    assert len(samples) >= 3
    assert all(raw.startswith(b"cpu ") for _, raw in samples)
    assert [t for t, _ in samples] == sorted(t for t, _ in samples)
    assert result.histograms["response_time"].count > 0
