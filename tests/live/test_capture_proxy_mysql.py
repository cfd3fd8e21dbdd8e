"""A capture by a proxy between real clients and a real MariaDB."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_mysql import FakeMysql
from proxied import Proxied, listening, recorded
from raw_mysql import CERTIFICATES, PASSWORD, RawMysql
from raw_server import free_port
from user import FULL_SPEED, User

from ironbench.errors import FailureError, InputError, IronbenchError
from ironbench.workloads.capture import file

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture-proxy")]


@contextmanager
def proxied(user: User, server: RawMysql, *words: str, dsn: str = "") -> Iterator[Proxied]:
    to = dsn or f"mysql://root@127.0.0.1:{server.port}/d?tls=disable"
    with listening(user, server, "--listen", "127.0.0.1:0", "--to", to, "-o", "shop.capture", *words) as proxy:
        yield proxy


def test_statements_of_a_session_are_recorded_and_shown(user: User, raw_mysql: RawMysql) -> None:
    with proxied(user, raw_mysql) as proxy:
        connection = raw_mysql.connect(socket=None, **proxy.place, user="password_user", password=PASSWORD)
        connection.query("create temporary table t (a int primary key, b text)")
        connection.query("start transaction")
        connection.query("insert into t values (1, 'it''s'), (2, \"two\")")
        connection.query("commit")
        assert connection.query("select a, b from t") == [("1", "it's"), ("2", "two")]
        with pytest.raises(FailureError):
            connection.query("insert into t values (1, '')")
        assert connection.query("select 1; select 2") == [("2",)]
        connection.close()
        with pytest.raises(InputError):
            raw_mysql.connect(socket=None, **proxy.place, user="password_user", password="wrong password")
        proxy.end()
    found = recorded(user, "template, row_count, error, user_name, database_name, obstacle")
    rest = ("password_user", "d", None)
    assert ("insert into t values (?, ?), ...", 2, None, *rest) in found
    assert ("insert into t values (?, ?)", 0, "23000", *rest) in found
    assert ("select a, b from t", 2, None, *rest) in found
    assert ("select ?; select ?", 2, None, *rest) in found
    same = "template in ('start transaction', 'commit') or text like '%two%'"
    assert recorded(user, "count(distinct transaction)", same) == [(1,)]
    stored = b"".join(path.read_bytes() for path in user.home.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in stored and b"wrong password" not in stored
    assert "insert into t values" in user("show", "shop.capture").stdout
    told = user("run", "capture", "--with", "file=shop.capture", "--engine", "postgres", "--plan")
    assert told.code == 2 and "another kind of server" in told.stderr


def test_a_run_with_prepared_statements_is_recorded(user: User, raw_mysql: RawMysql) -> None:
    (user.home / "one.sql").write_text("\\set a random(1, 9)\nselect :a + 1 as b;\n")
    with proxied(user, raw_mysql) as proxy:
        dsn = f"mysql://password_user:{PASSWORD}@{proxy.address}/d?tls=disable"
        script = ("one.sql", "--protocol", "prepared")
        user.measured("run", "script", *script, "--dsn", dsn, "--clients", "2", *FULL_SPEED)
        proxy.end()
    (record,) = user.records()
    condition = "template like 'select ? + ?%' and prepared is not null"
    ((calls, rows, lowest, highest, failed),) = recorded(
        user, "count(*), sum(row_count), min(parameters[1]), max(parameters[1]), count(obstacle)", condition
    )
    assert calls == rows >= record["metrics"]["transactions"] > 0
    assert (lowest, highest, failed) == ("1", "9", 0)
    facts = file.facts(str(user.home / "shop.capture"))
    assert facts.replayable and facts.protocol == "mysql"
    assert recorded(user, "distinct parameter_types", condition) == [("i",)]


def test_masked_captures_contain_no_literal(user: User, raw_mysql: RawMysql) -> None:
    with proxied(user, raw_mysql, "--mask") as proxy:
        connection = raw_mysql.connect(socket=None, **proxy.place, user="password_user", password=PASSWORD)
        connection.query("select \"very secret\", 'it\\'s hidden' # hidden value\n")
        connection.close()
        root = raw_mysql.connect(socket=None, **proxy.place, user="password_user", password=PASSWORD)
        with pytest.raises(FailureError):
            root.query("create user u identified by 'hunter2'")
        root.close()
        proxy.end()
    everything = str(recorded(user, "*")).encode() + (user.home / "shop.capture").read_bytes()
    for secret in (b"very secret", b"hidden", b"hunter2"):
        assert secret not in everything


@pytest.mark.skipif(shutil.which("mariadb") is None, reason="needs Debian's package mariadb-client-core")
def test_rows_of_a_local_file_pass(user: User, raw_mysql: RawMysql) -> None:
    (user.home / "rows").write_text("".join(f"{number}\n" for number in range(300_000)))
    with proxied(user, raw_mysql) as proxy:
        place = proxy.place
        words = ["-h", place["host"], "-P", str(place["port"]), "-u", "password_user", f"-p{PASSWORD}", "d", "-N"]
        text = (
            "create table many (n int); load data local infile 'rows' into table many; "
            "select count(*) from many; drop table many;"
        )
        command = ["mariadb", "--no-defaults", "--local-infile=1", *words, "-e", text]
        done = subprocess.run(command, capture_output=True, text=True, cwd=user.home)
        assert done.stdout == "300000\n", done.stderr
        proxy.end()
    assert recorded(user, "row_count", "template like 'load data%'") == [(300_000,)]


@pytest.mark.parametrize("query", ["tls=require", "tls=disable&socket={socket}"])
def test_a_server_that_the_proxy_cannot_serve_safely_is_refused(user: User, raw_mysql: RawMysql, query: str) -> None:
    dsn = f"mysql://root@127.0.0.1:{raw_mysql.port}/d?{query.format(socket=raw_mysql.socket)}"
    told = user("capture", "--listen", "127.0.0.1:0", "--to", dsn, "-o", "shop.capture")
    assert told.code == 2 and "--to" in told.stderr and "hint:" in told.stderr


CERTIFICATE = ("--tls-cert", str(CERTIFICATES / "server.crt"), "--tls-key", str(CERTIFICATES / "server.key"))
CIPHER = "select variable_value <> '' from information_schema.session_status where variable_name = 'ssl_cipher'"


def stored(user: User) -> bytes:
    return b"".join(path.read_bytes() for path in user.home.rglob("*") if path.is_file())


def test_a_client_with_tls_reaches_the_server_with_tls_and_others_without(user: User, raw_mysql: RawMysql) -> None:
    dsn = f"mysql://root@127.0.0.1:{raw_mysql.port}/d?tls=prefer"
    with proxied(user, raw_mysql, *CERTIFICATE, dsn=dsn) as proxy:
        place = {"socket": None, **proxy.place, "password": PASSWORD}
        for name, tls, encrypted in (
            ("tls_user", "require", "1"),
            ("password_user", "require", "1"),
            ("password_user", "disable", "0"),
        ):
            connection = raw_mysql.connect(**place, user=name, tls=tls)
            assert connection.query(CIPHER) == [(encrypted,)]
            assert connection.query("select repeat('x', 1000000)") == [("x" * 1_000_000,)]
            assert connection.query(f"select length('{'y' * 300_000}')") == [("300000",)]
            connection.close()
        with pytest.raises(InputError):
            raw_mysql.connect(**place, user="tls_user", tls="disable")
        with pytest.raises(InputError):
            raw_mysql.connect(**(place | {"password": "wrong password"}), user="tls_user", tls="require")
        if shutil.which("mariadb"):
            words = ["-h", place["host"], "-P", str(place["port"]), "-u", "tls_user", f"-p{PASSWORD}", "d", "-N"]
            words += ["--ssl", "--ssl-verify-server-cert=0", "-e", CIPHER]
            done = subprocess.run(["mariadb", "--no-defaults", *words], capture_output=True, text=True)
            assert done.stdout == "1\n", done.stderr
        proxy.end()
    assert recorded(user, "count(*)", "template like 'select repeat%' and row_count = 1") == [(3,)]
    assert set(recorded(user, "distinct user_name")) == {("tls_user",), ("password_user",)}
    assert PASSWORD.encode() not in stored(user) and b"wrong password" not in stored(user)


def test_a_server_that_requires_tls_is_captured_with_tls(user: User, fast_directory: Path) -> None:
    folder = fast_directory / "mysql-with-tls"
    folder.mkdir()
    server = RawMysql(folder, free_port(), ("--require-secure-transport=1",))
    to = f"mysql://password_user:{PASSWORD}@127.0.0.1:{server.port}/d"
    try:
        told = user("capture", "--listen", "127.0.0.1:0", "--to", to, "-o", "shop.capture", "--duration", "1s")
        assert told.code == 2 and "error: --to: " in told.stderr and "--tls-cert" in told.stderr, told
        assert not (user.home / "shop.capture").exists()
        with proxied(user, server, *CERTIFICATE, dsn=f"{to}?tls=require") as proxy:
            place = {"socket": None, **proxy.place, "user": "password_user", "password": PASSWORD}
            connection = server.connect(**place, tls="require")
            assert connection.query(CIPHER) == [("1",)]
            connection.close()
            with pytest.raises(IronbenchError, match="enable TLS in the client"):
                server.connect(**place, tls="disable")
            proxy.end()
        assert recorded(user, "count(*)") == [(1,)]
        (user.home / "shop.capture").unlink()
        other = f"{to}?tls=verify-full&tls_ca={CERTIFICATES / 'other_root.crt'}"
        with proxied(user, server, *CERTIFICATE, dsn=other) as proxy:
            with pytest.raises(IronbenchError, match="TLS with the server"):
                server.connect(**(place | proxy.place), tls="require")
            assert proxy.begun.end(signal.SIGINT)[0].code == 2, "no statement ran"
    finally:
        server.stop()
    shutil.rmtree(folder)


def test_a_password_sent_inside_tls_passes_and_is_in_no_file(user: User, raw_mysql: RawMysql) -> None:
    """The full authentication of caching_sha2_password, with a server that plays MySQL."""
    with FakeMysql() as server:
        dsn = f"mysql://root@127.0.0.1:{server.port}/d?tls=require"
        with proxied(user, raw_mysql, *CERTIFICATE, dsn=dsn) as proxy:
            place = {"socket": None, **proxy.place, "user": "ann", "password": PASSWORD}
            connection = raw_mysql.connect(**place, tls="require")
            connection.query("do 1")
            connection.close()
            proxy.end()
        assert server.passwords == [PASSWORD.encode() + b"\0"]
    assert recorded(user, "template, user_name, error") == [("do ?", "ann", None)]
    assert PASSWORD.encode() not in stored(user)


@pytest.mark.parametrize("query", ["", "?tls=disable", "?tls=prefer"])
def test_a_unix_socket_is_refused_if_passwords_would_leave_the_machine_without_tls(user: User, query: str) -> None:
    """Over a Unix socket, clients send the password itself. The address is reserved for documentation (RFC 5737)."""
    words = ("--listen", str(user.home / "proxy.3306"), "--to", f"mysql://root@192.0.2.1/d{query}")
    told = user("capture", *words, "-o", "shop.capture", "--duration", "1s")
    assert told.code == 2 and "error: --to: " in told.stderr and "--tls-cert" in told.stderr, told


def test_a_client_of_a_unix_socket_sends_no_password_to_a_server_with_tls(user: User, raw_mysql: RawMysql) -> None:
    with FakeMysql() as server:
        to = f"mysql://root@127.0.0.1:{server.port}/d?tls=require"
        words = ("--listen", str(user.home / "proxy.3306"), "--to", to, "-o", "shop.capture", *CERTIFICATE)
        with listening(user, raw_mysql, *words) as proxy:
            with pytest.raises(IronbenchError, match="enable TLS in the client"):
                raw_mysql.connect(socket=proxy.address, user="ann", password=PASSWORD)
            assert proxy.begun.end(signal.SIGINT)[0].code == 2, "no statement ran"
        assert not server.passwords


@pytest.mark.parametrize(
    "query", ["127.0.0.1/d?tls=disable", "x/d?tls=prefer", "localhost/d?socket=/run/mysqld/mysqld.sock"]
)
def test_a_certificate_is_refused_if_the_server_has_no_safe_tls(user: User, query: str) -> None:
    words = ("--listen", "127.0.0.1:0", "--to", f"mysql://root@{query}", "-o", "shop.capture")
    told = user("capture", *words, *CERTIFICATE)
    assert told.code == 2 and "--to" in told.stderr and "hint:" in told.stderr


def test_a_client_that_insists_on_tls_is_told_that_the_proxy_has_none(user: User, raw_mysql: RawMysql) -> None:
    with proxied(user, raw_mysql) as proxy:
        with pytest.raises(IronbenchError, match="TLS"):
            raw_mysql.connect(socket=None, **proxy.place, user="tls_user", password=PASSWORD, tls="require")
        connection = raw_mysql.connect(socket=None, **proxy.place, user="password_user", password=PASSWORD)
        connection.query("select 1")
        connection.close()
        proxy.end()
    assert recorded(user, "distinct user_name") == [("password_user",)]


def test_a_killed_server_closes_connections(user: User, fast_directory: Path) -> None:
    folder = fast_directory / "mysql-to-kill"
    folder.mkdir()
    server = RawMysql(folder, free_port())
    with proxied(user, server) as proxy:
        connection = server.connect(socket=None, **proxy.place, user="password_user", password=PASSWORD)
        connection.query("select 1")
        server.process.send_signal(signal.SIGKILL)
        with pytest.raises(FailureError):
            connection.query("select 2")
        server.process.wait()
        with pytest.raises(FailureError, match="the proxy cannot connect"):
            server.connect(socket=None, **proxy.place, user="password_user", password=PASSWORD)
        proxy.end()
    shutil.rmtree(folder)
