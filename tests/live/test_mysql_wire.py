"""The blocking connection to MariaDB, against a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from raw_mysql import CERTIFICATES, PASSWORD, RawMysql

from ironbench import _core
from ironbench.errors import FailureError, InputError

pytestmark = pytest.mark.live


@pytest.fixture
def connection(raw_mysql: RawMysql) -> Iterator[_core.MysqlConnection]:
    connection = raw_mysql.connect()
    connection.query("CREATE OR REPLACE TABLE t (a int PRIMARY KEY, b varchar(10), c datetime)")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("road", "tls", "expected"),
    [("unix", "require", False), ("tcp", "disable", False), ("tcp", "prefer", True), ("tcp", "require", True)],
)
def test_a_user_with_a_password_is_let_in_on_every_road(
    raw_mysql: RawMysql, road: str, tls: str, expected: bool
) -> None:
    address = {"socket": None} if road == "tcp" else {}
    connection = raw_mysql.connect(**address, user="password_user", password=PASSWORD, tls=tls)
    assert connection.query("SELECT current_user()") == [("password_user@%",)]
    [(cipher,)] = connection.query(
        "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'ssl_cipher'"
    )
    assert (connection.tls, bool(cipher)) == (expected, expected)
    assert (connection.parameter("server_version") or "").startswith("1")
    assert connection.parameter("time_zone") is None


def test_a_certificate_is_verified_with_the_authority_and_the_name_asked_for(raw_mysql: RawMysql) -> None:
    good = {"socket": None, "host": "localhost", "tls": "verify-full", "tls_ca": str(CERTIFICATES / "root.crt")}
    user = {"user": "tls_user", "password": PASSWORD}
    assert raw_mysql.connect(**good, **user).tls
    with pytest.raises(InputError, match="UnknownIssuer") as refused:
        raw_mysql.connect(**good | {"tls_ca": str(CERTIFICATES / "other_root.crt")}, **user)
    assert "tls_ca" in refused.value.hint
    with pytest.raises(InputError, match="not valid for name"):
        raw_mysql.connect(**good | {"host": "127.0.0.1"}, **user)


@pytest.mark.parametrize(
    ("changes", "number", "hint"),
    [
        ({"user": "password_user", "password": "wrong"}, 1045, "correct user and password"),
        ({"user": "nobody"}, 1045, "correct user and password"),
        ({"database": "nowhere"}, 1049, "CREATE DATABASE"),
    ],
)
def test_whoever_is_not_let_in_learns_why(raw_mysql: RawMysql, changes: dict[str, str], number: int, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        raw_mysql.connect(**changes)
    assert refused.value.number == number
    assert hint in refused.value.hint


def test_an_answer_is_that_of_the_last_statement_with_rows(connection: _core.MysqlConnection) -> None:
    assert connection.query("SELECT 1, NULL; SELECT 'é' AS a, '' AS b; DO 1") == [("é", "")]
    assert connection.columns() == ["a", "b"]
    connection.query("INSERT INTO t (a) VALUES (1), (2), (3)")
    assert connection.changes() == 3
    connection.query("UPDATE t SET b = NULL")
    assert connection.changes() == 3, "an update counts the rows that it found"
    assert connection.measure("SELECT * FROM t")[0] == 3


def test_a_refused_statement_is_named_with_number_and_sqlstate_and_the_session_goes_on(
    connection: _core.MysqlConnection,
) -> None:
    with pytest.raises(FailureError, match="statement SELECT 1; SELEC 2") as refused:
        connection.query("SELECT 1; SELEC 2; SELECT 3")
    assert (refused.value.number, refused.value.sqlstate) == (1064, "42000")
    assert connection.query("SELECT 4") == [("4",)]


def test_loaded_data_take_their_escapes_and_a_value_that_does_not_fit_is_a_failure(
    connection: _core.MysqlConnection,
) -> None:
    load = "LOAD DATA LOCAL INFILE '' INTO TABLE t (a, b, c)"
    assert connection.copy_in(load, b"1\ta\\tb\\\\\t2024-01-02 03:04:05\n2\t\\N\t\\N\n") == 2
    expected = [("1", "a\tb\\", "2024-01-02 03:04:05"), ("2", None, None)]
    assert connection.query("SELECT * FROM t ORDER BY a") == expected
    for data, cause in [(b"2\tx\t\\N\n", "Duplicate entry"), (b"3\tlonger than ten\t\\N\n", "Data truncated")]:
        with pytest.raises(FailureError, match=cause):
            connection.copy_in(load, data)
    with pytest.raises(FailureError, match="not LOAD DATA"):
        connection.copy_in("SELECT 1", b"")


def test_no_file_of_the_client_is_read_because_a_statement_asks_for_it(connection: _core.MysqlConnection) -> None:
    with pytest.raises(FailureError, match="only through copy_in"):
        connection.query("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t")
    assert connection.query("SELECT count(*) FROM t") == [("0",)]


def test_cancel_ends_the_statement_and_leaves_the_session(connection: _core.MysqlConnection) -> None:
    timer = threading.Timer(0.2, connection.cancel)
    timer.start()
    with pytest.raises(FailureError) as cancelled:
        connection.query("SELECT * FROM (SELECT sleep(60) FROM seq_1_to_100) x")
    timer.join()
    assert (cancelled.value.number, cancelled.value.sqlstate) == (1317, "70100")
    assert connection.query("SELECT 1") == [("1",)]


def test_a_value_of_16_mib_is_refused_by_the_head_of_its_packet(raw_mysql: RawMysql) -> None:
    raw_mysql.connect().query("SET GLOBAL max_allowed_packet = 64 * 1024 * 1024")
    connection = raw_mysql.connect()
    sql = f"SELECT length('{'x' * 17_000_000}')"
    assert connection.query(sql) == [("17000000",)], "a statement may be as long"
    with pytest.raises(FailureError, match="a packet of 16 MiB or more"):
        connection.query("SELECT repeat('x', 17000000)")


def test_statements_of_init_run_on_every_connection(raw_mysql: RawMysql) -> None:
    connection = raw_mysql.connect(init=["SET SESSION sort_buffer_size = 65536"])
    assert connection.query("SELECT @@sort_buffer_size") == [("65536",)]
    with pytest.raises(InputError, match="returns rows"):
        raw_mysql.connect(init=["SELECT 1"])
