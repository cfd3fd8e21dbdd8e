"""Failed transactions are shown with every rate, never part of a good trial, and by default the first ends the
trial."""

from __future__ import annotations

import json
import re

import pytest
from raw_server import RawServer
from user import PAUSED, Told, User

pytestmark = pytest.mark.live

BAD = "SELECT 1;\nSELECT *\n  FROM nix WHERE id = :client_id;\n"
TIMES = ("--think-time", "1ms", "--duration", "1.5s", "--warmup", "0s", "--no-observe")


def written(user: User, name: str, text: str) -> str:
    (user.home / name).write_text(text)
    return str(user.home / name)


def trial(told: Told) -> dict[str, object]:
    (found,) = json.loads(told.stdout)["trials"]
    return dict(found)


@pytest.mark.parametrize("warmup", ["0s", "20s"])
def test_the_first_error_of_the_first_second_ends_the_run_with_its_place_and_the_server_s_words(
    user: User, dsn: str, warmup: str
) -> None:
    script = written(user, "bad.sql", BAD)
    words = ("--dsn", dsn, "--clients", "1,2", "--duration", "30s", "--warmup", warmup, "--no-observe")
    told = user("run", "script", script, *words)
    assert told.code == 1
    place = f"script {script}, line 2, command 2: "
    cause = 'relation "nix" does not exist (SQLSTATE 42P01); in: SELECT * FROM nix WHERE id = :client_id'
    assert place + cause in told.stderr + told.stdout
    assert "--on-error continue" in told.stderr + told.stdout
    (record,) = user.records()  # the sweep ends with it
    assert record["status"] == "voided" and place in record["cause"]


def test_a_hint_of_the_server_is_shown(user: User, dsn: str) -> None:
    script = written(user, "bad.sql", "SELECT lowerr('A');\n")
    told = user("run", "script", script, "--dsn", dsn, *TIMES)
    assert "hint: No function matches" in told.stderr + told.stdout


@pytest.mark.parametrize("engine", ["postgres", "sqlite", "null"])
def test_an_error_of_the_script_itself_is_not_blamed_on_the_engine(user: User, dsn: str, engine: str) -> None:
    script = written(user, "own.sql", "SELECT 1;\n\\set x 1 / 0\n")
    where = ("--dsn", dsn) if engine == "postgres" else ("--engine", engine)
    told = user("run", "script", script, *where, *TIMES)
    said = told.stderr + told.stdout
    assert told.code == 1
    assert (
        f"script {script}, line 2, command 2: error of the script itself: division by zero; in: \\set x 1 / 0" in said
    )
    assert "answered" not in said


def test_an_error_of_sqlite_ends_the_run_with_its_place(user: User) -> None:
    script = written(user, "bad.sql", BAD)
    told = user("run", "script", script, "--engine", "sqlite", *TIMES)
    assert told.code == 1
    assert f"script {script}, line 2, command 2: no such table: nix (SQLITE_ERROR); in: SELECT *" in told.stderr


def test_a_script_that_always_fails_voids_a_trial_whose_other_script_does_not(user: User, dsn: str) -> None:
    good, bad = written(user, "good.sql", "SELECT 1;\n"), written(user, "bad.sql", BAD)
    words = ("--dsn", dsn, "--on-error", "continue", *TIMES)
    told = user("run", "script", f"{good}@97", f"{bad}@3", *words, "--json")
    assert told.code == 1
    found = trial(told)
    assert found["status"] == "voided"
    assert re.search(
        rf"of [\d,]+ transactions of script {bad} failed \(100%\); the first error: script {bad}, line 2",
        str(record_of(user)["cause"]),
    )
    metrics = record_of(user)["metrics"]
    assert metrics["failed"] == metrics[f"failed{{script={bad}}}"] > 0 and f"failed{{script={good}}}" not in metrics


def record_of(user: User) -> dict[str, object]:
    (record,) = user.records()
    return record


def test_one_failure_in_a_hundred_is_suspect_and_stands_with_the_rate(user: User, dsn: str) -> None:
    script = written(user, "rare.sql", "\\set n random(1, 100)\n\\if :n = 1\nSELECT 1 / 0;\n\\endif\nSELECT 1;\n")
    told = user("run", "script", script, "--dsn", dsn, "--on-error", "continue", *TIMES)
    assert told.code == 3
    record = record_of(user)
    assert record["status"] == "suspect" and "transactions-failed" in str(record["warnings"])
    assert re.search(r"[\d,]+ of [\d,]+ transactions failed \(\d(\.\d+)?%\)", told.stdout)
    assert "division by zero (SQLSTATE 22012); in: SELECT 1 / 0" in told.stdout
    report = user("report", "--format", "text")
    assert re.search(r"\(.*% failed\)", report.stdout)
    assert "failed transactions" in user("leaderboard", "script", COLUMNS="240").stdout


def test_serialization_failures_that_exhaust_their_tries_fail_but_do_not_end_the_trial(user: User, dsn: str) -> None:
    body = "BEGIN;\nDO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$;\nEND;\n"
    script = written(user, "retry.sql", body)
    told = user("run", "script", script, "--dsn", dsn, "--max-tries", "3", *TIMES, "--json")
    assert told.code == 1
    metrics = trial(told)["metrics"]
    assert isinstance(metrics, dict) and metrics["failed"] > 1
    # A transaction at either end of the window has some of its tries outside the window.
    assert metrics["retries"] == pytest.approx(2 * metrics["failed"], abs=2)


def test_a_warm_up_has_its_own_transactions(user: User, dsn: str) -> None:
    script = written(user, "one.sql", "SELECT 1;\n")
    words = ("--dsn", dsn, "--clients", "3", "--transactions", "300", "--warmup", "1s", "--no-observe", "--json")
    told = user("run", "script", script, *words)
    metrics = trial(told)["metrics"]
    assert isinstance(metrics, dict) and metrics["transactions"] == 900, told.stderr


@pytest.mark.parametrize("engine", ["postgres", pytest.param("sqlite", marks=pytest.mark.long)])
def test_statements_and_scripts_are_timed_one_by_one_where_that_is_asked_for(user: User, dsn: str, engine: str) -> None:
    slow = written(user, "two.sql", "SELECT 1 AS one;\n\\sleep 30 ms\nSELECT\n  2 AS two;\n")
    fast = written(user, "one.sql", "SELECT 3 AS three;\n")
    where = ("--dsn", dsn) if engine == "postgres" else ("--engine", engine)
    told = user.measured("run", "script", slow, fast, *where, *TIMES, "-r", COLUMNS="200")
    assert "Results by script, with 1 client" in told.stdout
    by_text = {one["text"]: one for one in record_of(user)["statements"]}  # type: ignore[attr-defined]
    assert set(by_text) == {"SELECT 1 AS one", "SELECT 2 AS two", "SELECT 3 AS three"}
    second = by_text["SELECT 2 AS two"]
    assert (second["line"], second["command"], second["failed"]) == (3, 3, 0)
    assert 0 < second["mean_s"] < 0.03 and second["count"] > 1  # the sleep is not counted in its time
    assert re.search(r"two.sql:3 .*SELECT 2 AS two", told.stdout)
    assert "Response time by statement" in user("report", "--format", "text").stdout
    assert "Response time by statement" in user("report", "--format", "md").stdout


def test_without_being_asked_no_statement_is_timed(user: User, dsn: str) -> None:
    user("run", "script", written(user, "one.sql", "SELECT 1;\n"), "--dsn", dsn, *TIMES)
    assert record_of(user)["statements"] == []


@pytest.mark.parametrize("engine", ["postgres", pytest.param("sqlite", marks=pytest.mark.long)])
def test_a_line_of_progress_each_second(user: User, dsn: str, engine: str) -> None:
    script = written(user, "one.sql", "SELECT 1;\n")
    where = ("--dsn", dsn) if engine == "postgres" else ("--engine", engine)
    words = (*PAUSED, "--duration", "3s", "--warmup", "2s", "--no-observe", "-P", "1")
    told = user("run", "script", script, *where, *words)
    line = r"progress: {}\.0 s, [\d.]+ tps, lat [\d.]+ ms stddev [\d.]+, 0 failed"
    for second in (1, 2, 3):
        assert re.search(line.format(second), told.stderr), told.stderr
    for second in ("-1", "0"):
        assert re.search(rf"progress: {second}\.0 s, warm-up, [\d.]+ tps", told.stderr), told.stderr
    rates = [float(rate) for rate in re.findall(r"progress: \d\.0 s, ([\d.]+) tps", told.stderr)]
    (record,) = user.records()
    assert sum(rates) == pytest.approx(record["metrics"]["transactions"], rel=0.01)


@pytest.mark.long
def test_a_role_without_rights_leaves_no_error_in_the_server_s_log(user: User) -> None:
    with RawServer() as server:
        session = server.connect()
        session.query("CREATE ROLE nobody LOGIN; REVOKE ALL ON DATABASE postgres FROM PUBLIC")
        session.query("GRANT CONNECT ON DATABASE postgres TO nobody")
        for view in ("pg_stat_wal", "pg_stat_io", "pg_stat_checkpointer", "pg_stat_bgwriter", "pg_tablespace"):
            session.query(f"REVOKE ALL ON {view} FROM PUBLIC")
        session.close()
        log = server.directory / "log"
        before = log.stat().st_size
        script = written(user, "one.sql", "SELECT 1;\n")
        for role in ("nobody", "postgres"):
            dsn = f"host={server.host} port={server.port} user={role} dbname=postgres"
            user.measured("run", "script", script, "--dsn", dsn, *PAUSED, "--duration", "2s", "--warmup", "1s")
        said = log.read_bytes()[before:].decode()
        assert not re.search(r"\b(ERROR|FATAL|PANIC):", said), said
