"""Captures of MariaDB's statements, replayed on restored data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mysql_work import RIGHT, ROUNDS, SALES, SESSIONS, loaded, ran
from patience import eventually
from proxied import Proxied, listening, recorded
from raw_mysql import LACKING, PASSWORD, RawMysql
from raw_server import free_port
from user import User

from ironbench.errors import FailureError

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(LACKING, reason="needs mariadbd"),
    pytest.mark.xdist_group("capture-mysql"),
]

STATEMENTS = 9 * SALES + 8
TRANSACTIONS = 3 * SALES + 5


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with a dump, and with both logs of what happened after it."""
    folder = tmp_path_factory.mktemp("logged")
    (folder / "server").mkdir()
    settings = (
        *(f"--general-log-file={folder / 'general.log'}", f"--slow-query-log-file={folder / 'slow.log'}"),
        "--long-query-time=0",
    )
    server = RawMysql(folder / "server", free_port(), settings)
    try:
        loaded(server, folder)
        server.query("set global general_log = 1, global slow_query_log = 1")
        user = User(folder)
        dsn = f"mysql://root@/d?socket={server.socket}"
        assert user("capture", "--mark", dsn).code == 0
        ran(server)
        assert user("capture", "--mark", dsn).code == 0
        eventually(lambda: all("values (2)" in (folder / f"{log}.log").read_text() for log in ("general", "slow")))
    finally:
        server.stop()
    yield folder


@pytest.fixture
def user(place: Path) -> User:
    return User(place)


@pytest.fixture
def server(user: User) -> Iterator[RawMysql]:
    """A server with the data, whose dump is in the user's directory."""
    folder = user.home / "server"
    folder.mkdir()
    server = RawMysql(folder, free_port())
    loaded(server, user.home)
    yield server
    server.stop()


@contextmanager
def proxied(user: User, server: RawMysql, *words: str) -> Iterator[Proxied]:
    to = f"mysql://root@127.0.0.1:{server.port}/d?tls=disable"
    with listening(user, server, "--listen", "127.0.0.1:0", "--to", to, "-o", "shop.capture", *words) as proxy:
        yield proxy


def replayed(user: User, *words: str) -> dict[str, float]:
    user.measured("run", "capture", "--with", "file=shop.capture", "--engine", "mariadb", "--no-observe", *words)
    (record,) = user.records()
    return record["metrics"] | {"checks": [one["passed"] for one in record["checks"]]}


@pytest.mark.parametrize("log", ["general", "slow"])
def test_a_log_is_replayed_on_restored_data(user: User, logged: Path, log: str) -> None:
    assert user("capture", str(logged / f"{log}.log"), "-o", "shop.capture").code == 0
    shown = user("show", "shop.capture", "--json").document
    assert shown["keys"]["known"] == SALES
    metrics = replayed(user, "--with", "mode=fast", "--dump", str(logged / "shop.dump"), "--check", RIGHT)
    assert metrics["checks"] == [True]
    assert metrics["failed"] == metrics["errors"] == 0
    assert metrics["transactions"] == TRANSACTIONS and metrics["replayed_statements"] == STATEMENTS
    assert metrics["replayed_keys"] == 4 * SALES and metrics["replay_missing_keys"] == 0
    assert metrics["replay_divergence{of=mix}"] == 0
    for measure in ("rows_inserted", "rows_updated", "rows_deleted"):
        assert metrics[f"recorded_work{{of={measure}}}"] == metrics[f"replayed_work{{of={measure}}}"] > 0, measure
    assert metrics["recorded_work{of=log_bytes}"] > 0 and metrics["replayed_work{of=log_bytes}"] > 0
    assert "recorded_work{of=wal_records}" not in metrics
    if log == "slow":
        assert metrics["recorded_work{of=rows}"] == metrics["replayed_work{of=rows}"] > SESSIONS * ROUNDS


@pytest.mark.parametrize(
    "words",
    [
        ("--with", "mode=schedule", "--with", "speed=2"),
        ("--with", "mode=think", "--with", "speed=2"),
        ("--with", "mode=rate", "--rate", "400", "--duration", "1s"),
    ],
    ids=["schedule", "think", "rate"],
)
def test_every_mode_replays_the_transactions(user: User, logged: Path, words: tuple[str, ...]) -> None:
    assert user("capture", str(logged / "slow.log"), "-o", "shop.capture").code == 0
    metrics = replayed(user, *words, "--dump", str(logged / "shop.dump"))
    assert metrics["failed"] == 0
    assert metrics["transactions"] > TRANSACTIONS / 4
    if "mode=rate" not in words:
        assert metrics["transactions"] == TRANSACTIONS and metrics["replayed_statements"] == STATEMENTS


def test_a_capture_of_the_proxy_contains_keys_rows_and_errors(user: User, server: RawMysql) -> None:
    with proxied(user, server) as proxy:
        place = {"socket": None, "user": "password_user", "password": PASSWORD, **proxy.place}
        ran(server, **place)
        session = server.connect(**place)
        with pytest.raises(FailureError):
            session.query("insert into item values (1, 'there already', 1)")
        session.close()
        proxy.end()
    keys = user("show", "shop.capture", "--json").document["keys"]
    assert keys == {"makers": SALES, "known": SALES, "values": 4 * SALES}
    metrics = replayed(user, "--with", "mode=fast", "--dump", "shop.dump", "--check", RIGHT)
    assert metrics["checks"] == [True] and metrics["failed"] == metrics["errors"] == 0
    assert metrics["replayed_failures"] == 1 and metrics["replay_missing_keys"] == 0
    assert metrics["replayed_statements"] == STATEMENTS + 1
    assert metrics["recorded_work{of=rows}"] == metrics["replayed_work{of=rows}"]


SCRIPT = """\\set i random(1, 100)
begin;
select name, price from item where id = :i;
insert into sale (item) values (:i);
update item set price = price + 1.5 where id = :i;
commit;
"""


@pytest.mark.parametrize("source", ["general log", "proxy"])
def test_prepared_statements_keep_their_parameters(user: User, server: RawMysql, source: str) -> None:
    (user.home / "work.sql").write_text(SCRIPT)
    script = (
        "run",
        "script",
        "work.sql",
        "--protocol",
        "prepared",
        "--clients",
        "3",
        "--transactions",
        "50",
        "--warmup",
        "0s",
    )
    if source == "proxy":
        with proxied(user, server) as proxy:
            dsn = f"mysql://password_user:{PASSWORD}@{proxy.address}/d?tls=disable"
            user.measured(*script, "--no-observe", "--dsn", dsn)
            proxy.end()
    else:
        log = user.home / "general.log"
        server.query(f"set global general_log_file = '{log}', global general_log = 1")
        user.measured(*script, "--no-observe", "--dsn", f"mysql://root@/d?socket={server.socket}")
        server.query("set global general_log = 0")
        assert user("capture", str(log), "-o", "shop.capture").code == 0
    condition = "prepared is not null and template like 'select name%'"
    columns = "list_sort(list(DISTINCT parameter_types)), min(len(parameters)), count(*)"
    ((types, fewest, done),) = recorded(user, columns, condition)
    assert (types, fewest) == (["i"], 1) and done >= user.records()[0]["metrics"]["transactions"] > 0
    work = ("--with", "only=statement:select name*", "--with", "mode=fast", "--dump", "shop.dump")
    user.measured("run", "capture", "--with", "file=shop.capture", "--engine", "mariadb", "--no-observe", *work)
    metrics = user.records()[-1]["metrics"]
    assert metrics["failed"] == metrics["errors"] == 0
    assert metrics["transactions"] == done
    assert metrics["replayed_statements"] == 5 * done and metrics["replay_divergence{of=mix}"] == 0


PEOPLE = 12


def test_a_masked_capture_is_replayed_and_its_joins_still_join(user: User, server: RawMysql) -> None:
    with proxied(user, server, "--mask") as proxy:
        session = server.connect(**{"socket": None, "user": "password_user", "password": PASSWORD, **proxy.place})
        session.query(
            "create table person (id int primary key auto_increment, name varchar(40) unique, size tinyint unsigned)"
        )
        session.query("create table visit (person int, name varchar(40), day date, price decimal(8, 2), note text)")
        for number in range(1, PEOPLE + 1):
            name = f"Secretname{number}"
            session.query(f"insert into person (name, size) values ('{name}', {200 + number})")
            ((key,),) = session.query("select last_insert_id()")
            session.query(
                f"insert into visit values ({key}, \"{name}\", '2026-03-{number:02}', {number}.50, 'it''s \\'one\\'')"
            )
            session.query(
                "select cast(v.price as decimal(8, 1)), p.size, date_format(v.day, '%Y-%m') from person p join visit v "
                f"on v.person = p.id and v.name = p.name where p.id = {key} and p.name = '{name}' limit 0, 10"
            )
            session.query(f"delete from visit where person = {key} and day = '2026-03-{number:02}'")
        session.close()
        proxy.end()
    assert b"Secretname" not in str(recorded(user, "*")).encode() + (user.home / "shop.capture").read_bytes()
    counts = recorded(user, "sum(row_count)", "command in ('select', 'delete')")
    assert counts == [(3 * PEOPLE,)]
    metrics = replayed(user, "--with", "mode=fast", "--dump", "shop.dump")
    assert metrics["failed"] == metrics["errors"] == 0
    assert metrics["recorded_work{of=rows}"] == metrics["replayed_work{of=rows}"] == 5 * PEOPLE
    assert metrics["replayed_keys"] == 3 * PEOPLE and metrics["replay_missing_keys"] == 0


def test_statements_find_every_row_that_an_insert_of_several_rows_added(user: User, server: RawMysql) -> None:
    with proxied(user, server) as proxy:
        session = server.connect(**{"socket": None, "user": "password_user", "password": PASSWORD, **proxy.place})
        for number in range(PEOPLE):
            session.query(f"insert into sale (item) values ({number}), ({number + 20}), ({number + 40})")
            ((key,),) = session.query("select last_insert_id()")
            for nth in (2, 0, 1):
                item = number + 20 * nth
                session.query(f"update sale set paid = 1 where id = {int(key or 0) + nth} and item = {item}")
        session.close()
        proxy.end()
    right = f"select (select count(*) from sale where paid = 1) = {2 * 3 * PEOPLE}"
    # The copies of the session get other keys than the recorded session.
    words = ("--with", "mode=fast", "--with", "sessions=2", "--dump", "shop.dump", "--check", right)
    metrics = replayed(user, *words)
    assert metrics["checks"] == [True] and metrics["failed"] == 0
    assert metrics["replayed_keys"] == 2 * 3 * PEOPLE and metrics["replay_missing_keys"] == 0


def test_an_existing_server_replays_a_capture(user: User, logged: Path, server: RawMysql) -> None:
    assert user("capture", str(logged / "slow.log"), "-o", "shop.capture").code == 0
    words = ("--with", "mode=fast", "--dump", str(logged / "shop.dump"), "--check", RIGHT, "--no-observe")
    dsn = f"mysql://root@/d?socket={server.socket}"
    user.measured("run", "capture", "--with", "file=shop.capture", "--dsn", dsn, *words)
    (record,) = user.records()
    assert [one["passed"] for one in record["checks"]] == [True]
    assert record["metrics"]["errors"] == 0 and record["metrics"]["transactions"] == TRANSACTIONS
