"""A TPC-H-derived trial with checks starts from data that no refresh function has changed."""

from __future__ import annotations

from typing import Any

import pytest
from raw_server import RawServer
from user import User

from ironbench.workloads.tpch_tables import TABLES

pytestmark = pytest.mark.live
SMALL = ("run", "tpch", "--with", "sf=0.01", "--with", "queries=1,6", "--with", "plans=no", "--no-observe")


def tried(user: User, *words: str) -> list[dict[str, Any]]:
    """Returns the records of one more run."""
    known = {record["id"] for record in user.records()}
    user.measured(*SMALL, *words)
    return [record for record in user.records() if record["id"] not in known]


def checked(trial: dict[str, Any]) -> bool:
    return any(check["name"] == "answers" and check["passed"] for check in trial["checks"])


@pytest.mark.long
def test_every_trial_that_is_always_checked_is_checked_whatever_ran_before(user: User) -> None:
    duckdb = ("--engine", "duckdb", "--data", str(user.home / "d"))
    (first,) = tried(user, *duckdb, "--with", "check=no")
    assert first["conditions"]["refresh sets"].startswith("1 to 1,") and not checked(first)
    trials = tried(user, *duckdb, "--with", "check=always", "--repeats", "2")
    for trial in trials:
        assert checked(trial), trial["warnings"]
        assert trial["conditions"]["data"].startswith("loaded again")
        assert trial["conditions"]["refresh sets"].startswith("1 to 1,")
    (later,) = tried(user, *duckdb, "--with", "check=no")
    assert later["conditions"]["refresh sets"].startswith("2 to 2,"), "what is not checked costs no load"


@pytest.mark.long
def test_data_that_were_never_checked_are_restored_for_the_first_check_alone(user: User) -> None:
    duckdb = ("--engine", "duckdb", "--data", str(user.home / "d"))
    tried(user, *duckdb, "--with", "check=no")
    (first,) = tried(user, *duckdb)
    assert checked(first)
    (second,) = tried(user, *duckdb)
    assert second["answers"]["values"]["earlier"] == "before refresh"
    assert second["conditions"]["refresh sets"].startswith("2 to 2,")


@pytest.mark.long
def test_on_a_server_of_others_only_tables_that_ironbench_made_are_loaded_anew(
    user: User, raw_server: RawServer, database: str
) -> None:
    dsn = ("--dsn", f"host={raw_server.host} port={raw_server.port} user=postgres dbname={database}")
    tried(user, *dsn, "--with", "check=no")
    (again,) = tried(user, *dsn, "--with", "check=always")
    assert checked(again) and again["conditions"]["data"].startswith("loaded again")
    boss = raw_server.connect(database=database)
    boss.query(f"comment on table {TABLES[0]} is null")
    boss.close()
    (theirs,) = tried(user, *dsn, "--with", "check=always")
    assert "answers-unchecked" in [warning["code"] for warning in theirs["warnings"]]
    assert "data" not in theirs["conditions"]
