"""The user's own data on the user's running server: what is created, dropped, refused and left unchanged."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from own_data import SCRIPT, dumped, shop, sums
from patience import eventually
from raw_server import PASSWORD, RawServer
from user import PAUSED, SHORT, User

from ironbench._core import Connection
from ironbench.engines.own_databases import is_ours

DISTRIBUTION = Path("/usr/lib/postgresql/15/bin")
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("own-data-server")]
LAB = """question = "More clients?"
[system]
dsn = "{dsn}"
[workload]
name = "script"
files = ["one.sql"]
[data]
{data}
[load]
think_time = "5ms"
duration = "0.5s"
warmup = "0s"
[vary]
clients = [1, 2]
[measure]
repeats = 2
quiet = "0s"
"""


@pytest.fixture(scope="module", params=[pytest.param("wheel", marks=pytest.mark.long), "distribution"])
def server(request: pytest.FixtureRequest) -> Iterator[RawServer]:
    """A server with a shop on it; the distribution's server has version 15."""
    if request.param == "distribution" and not DISTRIBUTION.is_dir():
        pytest.skip("PostgreSQL 15 of the distribution is not installed")
    with RawServer(programs=DISTRIBUTION if request.param == "distribution" else None) as one:
        shop(one)
        with closing(one.connect()) as boss:
            boss.query("create role plain login; create role maker login createdb")
        yield one


@pytest.fixture
def boss(server: RawServer) -> Iterator[Connection]:
    with closing(server.connect(options=[("application_name", "psql")])) as connection:
        yield connection


@pytest.fixture
def user(place: Path, server: RawServer) -> User:
    one = User(place)
    (one.home / "one.sql").write_text(SCRIPT)
    dumped(server, one.home / "shop.dump")
    return one


def address(server: RawServer, role: str = "postgres", database: str = "postgres") -> str:
    return f"postgresql://{role}@/{database}?host={server.host}&port={server.port}"


def databases(boss: Connection) -> set[str]:
    return {str(row[0]) for row in boss.query("select datname from pg_database")}


def made(boss: Connection) -> set[str]:
    return {name for name in databases(boss) if is_ours(name)}


def shop_is_whole(server: RawServer, before: list[tuple[str | None, ...]]) -> bool:
    with closing(server.connect(database="shop")) as inside:
        return sums(inside) == before


@pytest.fixture
def before(server: RawServer) -> list[tuple[str | None, ...]]:
    inside = server.connect(database="shop")
    try:
        return sums(inside)
    finally:
        inside.close()


def test_a_dump_is_loaded_once_each_trial_gets_a_copy_and_cleanup_removes_what_stays(
    user: User, server: RawServer, boss: Connection, before: list[tuple[str | None, ...]]
) -> None:
    there, dsn = databases(boss), address(server)
    check = 'check = "select (select count(*) from item) = 1000 and (select count(*) from sale) between 5001 and 50000"'
    (user.home / "lab.toml").write_text(LAB.format(dsn=dsn, data=f'dump = "shop.dump"\n{check}'))
    told = user.measured("lab", "run", "lab.toml", "--results", "lab")
    assert told.stderr.count("when loaded") == 1 and "kept on the server: 1 database" in told.stderr
    assert len(made(boss)) == 1 and databases(boss) - made(boss) == there
    assert (
        "reused from database" in user("run", "script", "one.sql", "--dsn", dsn, "--dump", "shop.dump", *SHORT).stderr
    )
    assert len(made(boss)) == 1
    cleaned = user("cleanup", "--dsn", dsn)
    assert cleaned.code == 0 and "removed: 1 database" in cleaned.stderr
    assert databases(boss) == there and shop_is_whole(server, before)


def test_trials_run_in_copies_of_a_template_which_stays_as_it_is(
    user: User, server: RawServer, boss: Connection, before: list[tuple[str | None, ...]]
) -> None:
    there = databases(boss)
    data = 'template = "shop"\ncheck = "select count(*) between 5001 and 50000 from sale"'
    (user.home / "lab.toml").write_text(LAB.format(dsn=address(server), data=data))
    told = user("lab", "run", "lab.toml", "--results", "lab")
    assert told.code in (0, 3) and "invalid:" not in told.stderr, told.stderr
    assert databases(boss) == there and shop_is_whole(server, before)
    records = [json.loads(path.read_text()) for path in (user.home / "lab").glob("trials/*/record.json")]
    (size,) = boss.query("select pg_database_size('shop')")[0]
    assert {record["metrics"]["data_bytes"] for record in records} == {int(size)}


@pytest.mark.long
@pytest.mark.parametrize("how", ['method = "slices"\nslice = "250ms"', 'restore = "block"'])
def test_cells_that_differ_by_session_settings_share_a_copy_and_never_touch_its_template(
    user: User, server: RawServer, boss: Connection, before: list[tuple[str | None, ...]], how: str
) -> None:
    there, dsn = databases(boss), address(server)
    data = 'template = "shop"\ncheck = "select count(*) between 5001 and 50000 from sale"'
    levels = "".join(f'm{mb} = {{ system.dsn = "{dsn}&options=-c%20work_mem%3D{mb}MB" }}\n' for mb in (4, 8))
    text = LAB.format(dsn=dsn, data=data).replace("[vary]\nclients = [1, 2]\n", f"[vary.memory]\n{levels}")
    text = text.replace('duration = "0.5s"', 'duration = "1.25s"')
    (user.home / "lab.toml").write_text(f'{text}rates = "none"\n{how}\n')
    told = user("lab", "run", "lab.toml", "--results", "lab")
    assert told.code in (0, 3) and "invalid:" not in told.stderr, told.stderr
    found = [json.loads(one.read_text()) for one in (user.home / "lab").glob("trials/*/record.json")]
    found = [one for one in found if one["purpose"] != "observed"]
    assert len(found) == 4 and all(one["metrics"]["transactions"] > 0 for one in found)
    assert sum("slices" in one["conditions"] for one in found) == (4 if "slices" in how else 0)
    assert databases(boss) == there and shop_is_whole(server, before)


def test_a_copy_has_the_settings_of_its_template_and_says_which_the_role_may_not_make(
    user: User, server: RawServer, boss: Connection
) -> None:
    boss.query("alter database shop set search_path = 'a b', public; alter database shop set log_min_messages = info")
    boss.query("alter database shop is_template true; alter role maker in database shop set work_mem = '9MB'")
    told = [f"'{name}: ' || current_setting('{name}')" for name in ("search_path", "work_mem")]
    check = "select " + " and ".join([f"{told[0]} = 'search_path: \"a b\", public'", f"{told[1]} = 'work_mem: 9MB'"])
    try:
        words = ("run", "script", "one.sql", "--dsn", address(server, "maker"), "--template", "shop", "--check", check)
        ended = user(*words, "--duration", "0.2s", "--warmup", "0s", "--on-error", "continue", "--no-observe")
        assert user.records(), ended
        (record,) = user.records()
        assert record["checks"][0]["passed"], record["checks"]
        assert "without its setting of log_min_messages" in record["conditions"]["restored"], ended
    finally:
        boss.query("alter database shop reset all; alter database shop is_template false")
        boss.query("alter role maker in database shop reset all")


def test_a_copy_is_made_whatever_its_template_lets_sessions_do(user: User, server: RawServer, boss: Connection) -> None:
    there = databases(boss)
    boss.query("alter database shop set default_transaction_read_only = on; alter database shop is_template true")
    boss.query("grant plain to maker; alter role maker in database shop set role = 'plain'")
    (user.home / "ask.sql").write_text("select 1;\n")
    check = "select current_user = 'plain' and current_setting('transaction_read_only') = 'on'"
    try:
        words = ("run", "script", "ask.sql", "--dsn", address(server, "maker"), "--template", "shop", "--check", check)
        user.measured(*words, "--repeats", "2", *SHORT)
        assert all(record["checks"][0]["passed"] for record in user.records())
        assert databases(boss) == there
    finally:
        boss.query("alter database shop reset all; alter database shop is_template false")
        boss.query("alter role maker in database shop reset all; revoke plain from maker")


def test_a_name_that_is_not_found_without_its_schema_is_answered_by_the_schemas_that_there_are(
    user: User, server: RawServer, boss: Connection
) -> None:
    boss.query("create database chain")
    there = server.connect(database="chain")
    there.query('create schema "north shore"; create table "north shore".item (id int); create table item (n int)')
    there.close()
    try:
        dumped(server, user.home / "chain.dump", "custom", "chain")
    finally:
        boss.query("drop database chain")
    words = ("run", "script", "one.sql", "--dump", "chain.dump", "--check", "select count(*) = 0 from sales")
    ended = user(*words, *SHORT)
    assert ended.code == 2 and "1 schema (north shore)" in ended.stderr, ended.stderr
    assert '--set search_path="north shore",public' in ended.stderr, ended.stderr


def test_each_trial_of_a_run_gets_a_copy_of_its_own(user: User, server: RawServer, boss: Connection) -> None:
    there = databases(boss)
    words = ("--template", "shop", "--check", "select count(*) = 5010 from sale", "--repeats", "3", "--warmup", "0s")
    told = user("run", "script", "one.sql", "--dsn", address(server), *words, "--transactions", "10", "--no-observe")
    assert told.code in (0, 3) and "invalid:" not in told.stderr, told.stderr
    assert len(user.records()) == 3 and databases(boss) == there


@pytest.mark.long
def test_a_server_that_somebody_restarts_between_trials_costs_no_more_than_one(
    user: User, server: RawServer, boss: Connection
) -> None:
    there = databases(boss)
    (user.home / "lab.toml").write_text(LAB.format(dsn=address(server), data='template = "shop"'))
    with user.begun("lab", "run", "lab.toml", "--results", "lab") as begun:
        begun.wait_for("trial 2 of 4")
        server.stop()
        server.start()
        told, _ = begun.end()
    found = [json.loads(path.read_text())["status"] for path in user.home.glob("**/trials/*/record.json")]
    assert sum(status in ("ok", "suspect") for status in found) == 4, told.stderr
    again = server.connect(options=[("application_name", "psql")])
    assert databases(again) == there
    again.close()


def test_a_role_without_createdb_is_told_what_to_ask_for(user: User, server: RawServer, boss: Connection) -> None:
    there = databases(boss)
    for words in (("--dump", "shop.dump"), ("--template", "shop")):
        told = user("run", "script", "one.sql", "--dsn", address(server, "plain"), *words, *SHORT)
        assert told.code == 2 and "ALTER ROLE plain CREATEDB" in told.stderr, told.stderr
    assert databases(boss) == there and not user.records()


def test_a_role_with_createdb_alone_restores_a_dump_and_is_refused_the_database_of_another(
    user: User, server: RawServer, boss: Connection
) -> None:
    there, dsn = databases(boss), address(server, "maker")
    user.measured("run", "script", "one.sql", "--dsn", dsn, "--dump", "shop.dump", *SHORT)
    told = user("run", "script", "one.sql", "--dsn", dsn, "--template", "shop", *SHORT)
    assert told.code in (1, 2) and "shop" in told.stderr and "permission denied" in told.stderr, told.stderr
    assert user("cleanup", "--dsn", dsn).code == 0
    assert databases(boss) == there


def test_an_extension_that_only_observes_and_that_the_role_may_not_make_is_left_out(
    user: User, server: RawServer, boss: Connection
) -> None:
    if not boss.query("select from pg_available_extensions where name = 'pg_stat_statements'"):
        pytest.skip("this server has no contrib modules")
    there, dsn = databases(boss), address(server, "maker")
    shop(server, "observed")
    inside = server.connect(database="observed")
    inside.query("create extension pg_stat_statements")
    inside.close()
    try:
        dumped(server, user.home / "observed.dump", "custom", "observed")
        dumped(server, user.home / "observed.sql", "plain", "observed")
        for name in ("observed.dump", "observed.sql"):
            told = user.measured("run", "script", "one.sql", "--dsn", dsn, "--dump", name, *SHORT)
            assert f"data: {name} (without pg_stat_statements, which only collects statistics)" in told.stderr
        assert user("cleanup", "--dsn", dsn).code == 0
    finally:
        boss.query("drop database observed")
    assert databases(boss) == there


def test_a_setup_file_on_a_template_of_another_owner_says_how_it_can_work(
    user: User, server: RawServer, boss: Connection
) -> None:
    there, dsn = databases(boss), address(server, "maker")
    (user.home / "index.sql").write_text("create index on item (name);\n")
    told = user("run", "script", "one.sql", "--dsn", dsn, "--template", "shop", *SHORT)
    assert told.code == 2 and "IS_TEMPLATE true" in told.stderr and "grant the role access" in told.stderr, told.stderr
    boss.query("alter database shop is_template true")
    try:
        words = ("--template", "shop", "--setup", "index.sql")
        told = user("run", "script", "one.sql", "--dsn", dsn, *words, *SHORT)
    finally:
        boss.query("alter database shop is_template false")
    assert told.code == 1 and "must be owner of table item" in told.stderr, told.stderr
    assert "keep their owner" in told.stderr and "--dump" in told.stderr, told.stderr
    assert databases(boss) == there


def test_a_run_names_the_copy_that_a_killed_one_left(user: User, server: RawServer, boss: Connection) -> None:
    there, words = databases(boss), ("run", "script", "one.sql", "--dsn", address(server), "--template", "shop")
    with user.begun(*words, *PAUSED, "--duration", "30s", "--no-observe") as begun:
        begun.wait_for("trial 1")
        quiet = user(*words, *SHORT).stderr
        begun.end(signal.SIGKILL)
    (left,) = made(boss)
    assert "by an earlier ironbench process" not in quiet, "that copy was in use"
    assert f"left on the server by an earlier ironbench process: 1 database ({left};" in user(*words, *SHORT).stderr
    assert eventually(lambda: user("cleanup", "--dsn", address(server)).code == 0)
    assert databases(boss) == there and "by an earlier ironbench process" not in user(*words, *SHORT).stderr


def test_a_template_in_use_is_refused(user: User, server: RawServer, boss: Connection) -> None:
    there, inside = databases(boss), server.connect(database="shop")
    told = user("run", "script", "one.sql", "--dsn", address(server), "--template", "shop", *SHORT)
    inside.close()
    assert told.code == 2 and "in use" in told.stderr and "1 other session" in told.stderr, told.stderr
    told = user("run", "script", "one.sql", "--dsn", address(server, database="shop"), "--template", "shop", *SHORT)
    assert told.code == 2 and "to another database" in told.stderr, told.stderr
    told = user("run", "script", "one.sql", "--dsn", address(server), "--template", "shoo", *SHORT)
    assert told.code == 2 and "no such database" in told.stderr, told.stderr
    assert databases(boss) == there and not user.records()


def test_a_template_that_changes_between_trials_ends_them(user: User, server: RawServer, boss: Connection) -> None:
    boss.query("create database moving template shop")
    try:
        (user.home / "lab.toml").write_text(LAB.format(dsn=address(server), data='template = "moving"'))
        with user.begun("lab", "run", "lab.toml", "--results", "lab") as begun:
            begun.wait_for("trial 1 of 4")
            assert eventually(lambda: bool(made(boss)))
            inside = server.connect(database="moving")
            inside.query("insert into sale (item) values (1)")
            inside.close()
            told, _ = begun.end()
        assert told.code != 0 and "was changed after these trials started" in told.stderr, told.stderr
        assert not made(boss)
    finally:
        boss.query("drop database moving")


def test_a_dump_that_does_not_restore_leaves_no_database(user: User, server: RawServer, boss: Connection) -> None:
    there = databases(boss)
    plain = dumped(server, user.home / "shop.sql", "plain")
    plain.write_text(plain.read_text().replace("\n7\t", "\nseven\t"))
    told = user("run", "script", "one.sql", "--dsn", address(server), "--dump", "shop.sql", *SHORT)
    assert told.code == 1 and 'invalid input syntax for type integer: "seven"' in told.stderr, told.stderr
    assert databases(boss) == there and not user.records()


@pytest.mark.long
def test_two_at_once_load_and_copy_beside_each_other_and_cleanup_waits_for_both(
    user: User, server: RawServer, boss: Connection, before: list[tuple[str | None, ...]], place: Path
) -> None:
    there, dsn = databases(boss), address(server)
    words = (
        "run",
        "script",
        "one.sql",
        "--dsn",
        dsn,
        "--dump",
        "shop.dump",
        "--duration",
        "8s",
        "--warmup",
        "0s",
        *PAUSED,
    )
    other = User(place / "other")
    for name in ("one.sql", "shop.dump"):
        (other.home / name).write_bytes((user.home / name).read_bytes())
    with user.begun(*words, "--no-observe") as first, other.begun(*words, "--no-observe") as second:
        for begun in (first, second):
            begun.wait_for("trial 1")
        told = user("cleanup", "--dsn", dsn)
        assert told.code == 1 and "in use by another ironbench" in told.stderr, told.stderr
        for begun in (first, second):
            assert begun.end()[0].code in (0, 3)
    assert user("cleanup", "--dsn", dsn).code == 0
    assert databases(boss) == there and shop_is_whole(server, before)


@pytest.mark.long
def test_whatever_kills_it_cleanup_leaves_what_was_there(
    user: User, server: RawServer, boss: Connection, before: list[tuple[str | None, ...]]
) -> None:
    """SIGKILL during the load, the copy and the trial, at times spread over the whole run."""
    there, dsn = databases(boss), address(server)
    begun_at = ("1 trial", "load shop.dump", "data: copy", "trial 1")
    for source in (("--dump", "shop.dump"), ("--template", "shop")):
        for number, words in enumerate(begun_at):
            if words == "load shop.dump" and source[0] == "--template":
                continue
            with user.begun("run", "script", "one.sql", "--dsn", dsn, *source, *PAUSED, "--duration", "5s") as begun:
                begun.wait_for(words)
                time.sleep(0.05 * number)
                begun.end(signal.SIGKILL)
            assert eventually(lambda: user("cleanup", "--dsn", dsn).code == 0)
            assert databases(boss) == there
    assert shop_is_whole(server, before)
    assert user.nothing_runs()


def test_a_password_is_in_no_record_and_no_command_line(user: User, server: RawServer, boss: Connection) -> None:
    boss.query("alter role scram_user createdb")
    dsn = f"host=127.0.0.1 port={server.port} user=scram_user dbname=postgres"
    environment = {"PGPASSWORD": PASSWORD}
    told = user.measured("run", "script", "one.sql", "--dsn", dsn, "--dump", "shop.dump", *SHORT, **environment)
    kept = [path for path in user.home.rglob("*") if path.is_file() and path.stat().st_size < 10_000_000]
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]
    assert PASSWORD not in told.stdout + told.stderr
    assert user("cleanup", "--dsn", dsn, **environment).code == 0
    assert not made(boss)
