"""Missing privileges of a role on a running server are reported before anything starts
(docs/start/your-own-server.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer
from user import PAUSED, SHORT, User

from ironbench import workloads
from ironbench.engines.administration import CHECKPOINT, REPLICATION, SIZES, TABLES
from ironbench.engines.postgres.existing_server import CONFIGURE, MONITOR, RIGHTS

pytestmark = pytest.mark.live
ROLE = "worker"
BACKUP = ("backup", "--with", "format=discard", "--with", "gb=0.01", "--with", "calm=1", "--no-observe")


@pytest.fixture
def user(place: Path) -> User:
    (place / "one.sql").write_text("SELECT 1;\n")
    return User(place)


@pytest.fixture
def dsn_of(raw_server: RawServer, database: str) -> Iterator[Callable[[Collection[str]], str]]:
    """Creates a role with these privileges, by the statements in messages and the guide; yields its DSN.

    There is also a database that it may not connect to.
    """
    boss = raw_server.connect(database=database)
    boss.query("create database closed")
    boss.query("revoke connect on database closed from public")
    boss.query(f"create role {ROLE} login")

    def make(held: Collection[str]) -> str:
        for name in held:
            boss.query(RIGHTS[name].grant.format(role=ROLE, schema="public"))
        return f"host={raw_server.host} port={raw_server.port} user={ROLE} dbname={database}"

    yield make
    boss.query(f"drop owned by {ROLE} cascade")
    boss.query(f"drop role {ROLE}")
    boss.query("drop database closed")
    boss.close()


def engine(user: User, trial: dict[str, Any]) -> dict[str, Any]:
    """Returns what the trial's record contains about its engine."""
    facts: dict[str, Any] = json.loads((user.results / "engines" / f"{trial['engine']}.json").read_text())
    return facts


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ({TABLES}, ("select-only", *SHORT)),
        ({CHECKPOINT}, ("script", "one.sql", "--checkpoint", "1s", *SHORT)),
        ({CHECKPOINT}, ("index-build", "--with", "gb=0.01", "--no-observe")),
        ({CHECKPOINT}, ("vacuum", "--with", "gb=0.01", "--no-observe")),
        ({REPLICATION}, BACKUP),
        ({SIZES, MONITOR}, BACKUP),
    ],
    ids=lambda value: "-".join(sorted(value)) if isinstance(value, set) else value[0],
)
def test_a_right_that_is_missing_is_named_before_anything_starts(
    user: User,
    dsn_of: Callable[[Collection[str]], str],
    raw_server: RawServer,
    database: str,
    lacking: set[str],
    words: tuple[str, ...],
) -> None:
    told = user("run", *words, "--dsn", dsn_of(RIGHTS.keys() - lacking))
    assert told.code == 2, told.stderr
    name = next(name for name in RIGHTS if name in lacking)
    assert RIGHTS[name].cause.format(schema="public", database=database) in told.stderr
    assert RIGHTS[name].grant.format(role=ROLE, schema="public") in told.stderr
    assert ("error: table pgbench_" in told.stderr) == (name == TABLES)
    assert user.records() == []
    boss = raw_server.connect(database=database)
    assert boss.query("select count(*) from pg_class where relnamespace = 'public'::regnamespace") == [("0",)]
    boss.close()


@pytest.mark.parametrize("words", [("select-only",), ("script", "one.sql")])
def test_a_statement_that_the_role_may_not_run_names_the_grant_as_the_way_out(
    user: User,
    dsn_of: Callable[[Collection[str]], str],
    raw_server: RawServer,
    database: str,
    words: tuple[str, ...],
) -> None:
    boss = raw_server.connect(database=database)
    columns = ("data", "content_key", "loaded_at", "rows", "bytes", "elapsed_s")
    boss.query(f"create table ironbench_load ({', '.join(f'{name} text' for name in columns)})")
    boss.close()
    (user.home / "one.sql").write_text("SELECT * FROM ironbench_load;\n")
    told = user("run", *words, "--dsn", dsn_of(RIGHTS.keys()), *SHORT)
    assert told.code == 1 and "permission denied for table ironbench_load" in told.stderr, told.stderr
    assert re.search("grant (the database )?role", told.stderr) and "--on-error continue" not in told.stderr


def test_a_cache_that_the_role_may_not_warm_fails_the_trial_and_leaves_the_server_alive(
    user: User, dsn_of: Callable[[Collection[str]], str], raw_server: RawServer, database: str
) -> None:
    dsn = dsn_of(RIGHTS.keys())
    boss = raw_server.connect(database=database)
    boss.query("create table secret (id int primary key)")
    boss.close()
    told = user("run", "script", "one.sql", "--cache", "hot", *SHORT, "--dsn", dsn)
    assert told.code == 1 and "permission denied for table secret" in told.stderr, told.stderr
    assert (
        "with --cache warm or `hot`, ironbench reads every table of the database: remove this setting, or grant role "
        "worker" in told.stderr
    )
    (trial,) = user.records()
    assert trial["status"] == "failed" and "died" not in trial["cause"]
    assert user("run", "script", "one.sql", *SHORT, "--dsn", dsn).code in (0, 3)


def test_a_lab_whose_role_lacks_a_right_does_not_begin(user: User, dsn_of: Callable[[Collection[str]], str]) -> None:
    (user.home / "lab.toml").write_text(
        f"""question = "Does it matter?"
system.dsn = "{dsn_of(RIGHTS.keys() - {CHECKPOINT})}"
[workload]
name = "script"
files = ["one.sql"]
[load]
duration = "1s"
checkpoint = "1s"
[vary]
clients = [1, 2]
"""
    )
    told = user("lab", "run", "lab.toml")
    assert told.code == 2 and RIGHTS[CHECKPOINT].cause in told.stderr, told.stderr
    assert not list(user.home.glob("**/plan.json"))


def test_with_every_right_everything_runs_and_is_seen(user: User, dsn_of: Callable[[Collection[str]], str]) -> None:
    dsn = dsn_of(RIGHTS)
    words = (*PAUSED, "--checkpoint", "0.5s", "--duration", "3s", "--warmup", "0s")
    user.measured("run", "script", "one.sql", *words, "--dsn", dsn)
    (trial,) = user.records()
    assert trial["conditions"]["checkpoints"].startswith("one checkpoint requested every 0.5 s")
    assert trial["metrics"]["checkpoints_requested"] >= 2
    assert "checkpoints" in trial["metrics"]
    facts = engine(user, trial)
    assert facts["settings_seen"] == "all" and facts["configure"]
    user.measured("run", *BACKUP, "--dsn", dsn)


@pytest.mark.parametrize("lacking", [MONITOR, CONFIGURE])
def test_without_a_right_to_see_a_trial_runs_and_says_what_is_not_seen(
    user: User, dsn_of: Callable[[Collection[str]], str], lacking: str
) -> None:
    user.measured("run", "script", "one.sql", *SHORT, "--dsn", dsn_of(RIGHTS.keys() - {lacking}))
    facts = engine(user, user.records()[0])
    assert (facts["settings_seen"] != "all") == (lacking == MONITOR)
    assert (facts["configure"] == "") == (lacking == CONFIGURE)


def test_the_guide_has_every_right_with_the_statement_that_grants_it() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "start" / "your-own-server.md").read_text()
    rows = [line for line in guide.splitlines() if line.startswith("|")]
    for right in RIGHTS.values():
        grant = right.grant.format(role="bench", schema="public")
        assert any(grant in row for row in rows), right.name
    assert {right for name in workloads.names() for right in workloads.get(name).rights} <= RIGHTS.keys()
