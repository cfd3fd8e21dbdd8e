"""Objects that ironbench leaves in a user's database are listed, and `cleanup --dsn` removes only those."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from raw_server import RawServer
from user import PAUSED, SHORT, User

from ironbench._core import Connection

pytestmark = pytest.mark.live


@pytest.fixture
def boss(raw_server: RawServer, database: str) -> Iterator[Connection]:
    connection = raw_server.connect(database=database, options=[("application_name", "psql")])
    yield connection
    connection.close()


def there(boss: Connection) -> set[str]:
    """Returns the tables, sequences, views and routines of the database's own schema."""
    rows = boss.query(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'S', 'v') "
        "union all select proname from pg_proc where pronamespace = 'public'::regnamespace"
    )
    return {str(row[0]) for row in rows}


@pytest.mark.parametrize(
    "words",
    [
        ("igen-oltp",),
        pytest.param(("igen-batch",), marks=pytest.mark.long),
        pytest.param(("tpcb-like",), marks=pytest.mark.long),
        pytest.param(("populate", "--with", "gb=0.001"), marks=pytest.mark.long),
        pytest.param(
            ("tpch", "--with", "sf=0.01", "--with", "queries=6", "--with", "plans=no"), marks=pytest.mark.long
        ),
    ],
    ids=lambda words: words[0],
)
def test_a_run_says_what_stays_and_cleanup_removes_that_and_only_that(
    user: User, boss: Connection, dsn: str, words: tuple[str, ...]
) -> None:
    boss.query("create table mine (a int); create function mine_too() returns int language sql as 'select 1'")
    before = there(boss)
    short = SHORT if words[0] not in ("tpch", "populate") else ("--no-observe",)
    told = user.measured("run", *words, "--dsn", dsn, *short)
    left = there(boss) - before
    assert left
    (line,) = [line for line in told.stderr.splitlines() if line.startswith("kept on the server: ")]
    assert "so that the next run need not load the data again" in line and "ironbench cleanup --dsn" in line
    cleaned = user("cleanup", "--dsn", dsn)
    assert cleaned.code == 0 and cleaned.stderr.startswith("removed: "), cleaned.stderr
    assert there(boss) == before
    assert "no objects created by ironbench" in user("cleanup", "--dsn", dsn).stderr


def test_what_an_experiment_did_not_load_is_not_said_to_be_left_by_it(user: User, boss: Connection, dsn: str) -> None:
    assert user("run", "igen-oltp", "--dsn", dsn, *SHORT).code in (0, 3)
    (user.home / "one.sql").write_text("SELECT 1;\n")
    assert "kept on the server" not in user("run", "script", "one.sql", "--dsn", dsn, *SHORT).stderr
    told = user("run", "tpcb-like", "--dsn", dsn, *SHORT)
    (line,) = [line for line in told.stderr.splitlines() if line.startswith("kept on the server: ")]
    assert "pgbench_accounts" in line and "igen" not in line


@pytest.mark.long
def test_what_a_lab_leaves_is_said_once_for_each_database(user: User, boss: Connection, dsn: str) -> None:
    others = dsn.replace("host=", "application_name=other host=")
    words = "".join(f'{name} = {{ system.dsn = "{one}" }}\n' for name, one in (("one", dsn), ("other", others)))
    lab = 'question = "Which?"\n[workload]\nname = "select-only"\n[load]\nduration = "0.5s"\n'
    lab += 'think_time = "5ms"\nwarmup = "0s"\n'
    (user.home / "lab.toml").write_text(f'{lab}[vary.place]\n{words}[measure]\nrepeats = 1\nquiet = "0s"\n')
    told = user("lab", "run", "lab.toml")
    lines = [line for line in told.stderr.splitlines() if line.startswith("kept on the server: ")]
    assert len(lines) == 1, told.stderr


def test_a_table_that_somebody_made_again_under_the_same_name_stays(user: User, boss: Connection, dsn: str) -> None:
    assert user("run", "igen-oltp", "--dsn", dsn, *SHORT).code in (0, 3)
    boss.query("drop table igen_stock; create table igen_stock (mine int)")
    assert user("cleanup", "--dsn", dsn).code == 0
    assert there(boss) == {"igen_stock"}


def test_nothing_is_removed_where_something_of_others_depends_on_it(user: User, boss: Connection, dsn: str) -> None:
    assert user("run", "tpcb-like", "--dsn", dsn, *SHORT).code in (0, 3)
    boss.query("create view mine as select sum(abalance) from pgbench_accounts")
    before = there(boss)
    told = user("cleanup", "--dsn", dsn)
    assert told.code == 1 and "view mine" in told.stderr, told.stderr
    assert there(boss) == before


@pytest.mark.long
def test_nothing_is_removed_while_another_ironbench_uses_it(user: User, boss: Connection, dsn: str) -> None:
    assert user("run", "tpcb-like", "--dsn", dsn, *SHORT).code in (0, 3)
    with user.begun("run", "tpcb-like", "--dsn", dsn, *PAUSED, "--duration", "30s", "--no-observe") as other:
        other.wait_for("trial 1")
        before = there(boss)
        told = user("cleanup", "--dsn", dsn)
        assert told.code == 1 and "in use by another ironbench" in told.stderr
        assert there(boss) == before


def test_what_is_on_this_machine_and_what_is_in_a_database_are_not_cleaned_at_once(user: User, dsn: str) -> None:
    assert user("cleanup", "--data", "--dsn", dsn).code == 2
