"""The blocking connection, against a real server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from raw_server import PASSWORD, RawServer, free_port

from ironbench import _core
from ironbench.errors import FailureError, InputError

pytestmark = pytest.mark.live

UNIX = "unix socket"
TCP = "TCP"


def at(server: RawServer, road: str, **changes: Any) -> _core.Connection:
    host = {"host": "127.0.0.1"} if road == TCP else {}
    return server.connect(**(host | changes))


@pytest.mark.parametrize("road", [UNIX, TCP])
@pytest.mark.parametrize("user", ["postgres", "cleartext_user", "md5_user", "scram_user"])
def test_every_way_of_authentication_lets_in_on_every_road(raw_server: RawServer, road: str, user: str) -> None:
    connection = at(raw_server, road, user=user, password=PASSWORD)
    assert connection.query("select current_user") == [(user,)]
    assert (connection.parameter("server_version") or "").startswith("18")
    assert not connection.tls
    connection.close()


@pytest.mark.parametrize("user", ["cleartext_user", "md5_user", "scram_user"])
def test_a_wrong_password_is_an_input_error_that_does_not_repeat_it(raw_server: RawServer, user: str) -> None:
    with pytest.raises(InputError) as caught:
        raw_server.connect(user=user, password="open barley")
    assert caught.value.sqlstate == "28P01"
    assert f'password authentication failed for user "{user}"' in str(caught.value)
    assert "PGPASSWORD" in caught.value.hint
    assert "barley" not in repr(caught.value) + str(caught.value) + caught.value.hint


def test_a_missing_password_names_the_ways_to_give_one(raw_server: RawServer) -> None:
    with pytest.raises(InputError, match="requires a password, but none was given") as caught:
        raw_server.connect(user="scram_user")
    assert "~/.pgpass" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"user": "nobody"}, 'role "nobody" does not exist'),
        ({"user": "rejected_user"}, "pg_hba.conf rejects connection"),
        ({"database": "nothing"}, 'database "nothing" does not exist'),
        ({"host": "no-such-host.invalid"}, "the name cannot be resolved"),
        ({"sslmode": "maybe"}, "unknown TLS mode"),
        ({"host": "/" + "long/" * 30}, "the path is longer than the system allows"),
        ({"options": [["no_such_parameter", "1"]]}, 'unrecognized configuration parameter "no_such_parameter"'),
    ],
)
def test_what_the_user_got_wrong_is_an_input_error_with_a_way_out(
    raw_server: RawServer, changes: dict[str, Any], cause: str
) -> None:
    with pytest.raises(InputError) as caught:
        raw_server.connect(**changes)
    assert cause in str(caught.value)
    assert caught.value.hint


def test_a_server_that_is_not_there_is_a_failure_that_says_how_to_go_on(raw_server: RawServer) -> None:
    with pytest.raises(FailureError, match="the socket does not exist") as caught:
        raw_server.connect(port=1)
    assert "start the server" in caught.value.hint
    with pytest.raises(FailureError, match="connection refused"):
        raw_server.connect(host="127.0.0.1", port=free_port())


def test_a_description_that_cannot_be_read_does_not_show_the_password() -> None:
    with pytest.raises(InputError) as caught:
        _core.Connection(json.dumps({"host": "h", "password": 271828}).encode())
    assert "271828" not in str(caught.value)


def test_a_full_server_says_so() -> None:
    with RawServer("max_connections=4", "superuser_reserved_connections=0", "reserved_connections=0") as server:
        held = []
        with pytest.raises(FailureError, match="too many clients") as caught:
            for _ in range(9):
                held.append(server.connect())
        assert "max_connections" in caught.value.hint


def test_the_rows_of_the_last_statement_that_has_some_are_returned(raw_server: RawServer, database: str) -> None:
    connection = raw_server.connect(database=database)
    rows = connection.query("select 1; select 2 as b, null as c, '' as d, 'é😀' as e; create table t (a int)")
    assert rows == [("2", None, "", "é😀")]
    assert connection.columns() == ["b", "c", "d", "e"]
    assert connection.query("") == []
    assert connection.query("insert into t select generate_series(1, 3)") == []
    assert connection.query("select from t") == [(), (), ()]


def test_many_and_large_rows_arrive_whole(raw_server: RawServer) -> None:
    connection = raw_server.connect()
    rows = connection.query("select i, repeat('x', i) from generate_series(1, 3000) i")
    assert [(int(i or 0), len(x or "")) for i, x in rows] == [(i, i) for i in range(1, 3001)]
    [(huge,)] = connection.query("select repeat('y', 5000000)")
    assert huge == "y" * 5_000_000


def test_a_refused_statement_leaves_the_session_usable(raw_server: RawServer) -> None:
    connection = raw_server.connect()
    with pytest.raises(FailureError) as caught:
        connection.query("select 1;\nselect *\nfrm t")
    assert caught.value.sqlstate == "42601"
    assert str(caught.value) == (
        'statement select 1; select * frm t: syntax error at or near "frm" (SQLSTATE 42601), at character 20: frm t'
    )
    with pytest.raises(FailureError) as caught:
        connection.query("select nam from (select 1 as name) x")
    assert "name" in caught.value.hint
    assert connection.query("select 1") == [("1",)]


def test_a_message_does_not_show_a_password_set_by_a_statement(raw_server: RawServer) -> None:
    connection = raw_server.connect()
    with pytest.raises(FailureError) as caught:
        connection.query("alter role nobody_at_all password 'hidden'")
    assert "hidden" not in str(caught.value)


def test_copy_in_loads_rows_and_counts_them(raw_server: RawServer, database: str) -> None:
    connection = raw_server.connect(database=database)
    connection.query("create table t (a int, b text)")
    data = b"".join(b"%d\t%s\n" % (i, b"\\N" if i % 7 == 0 else b"row") for i in range(100_000))
    assert connection.copy_in("copy t from stdin", data) == 100_000
    assert connection.query("select count(*), count(b), sum(a) from t") == [("100000", "85714", "4999950000")]
    assert connection.copy_in("copy t from stdin", b"") == 0


def test_a_bad_row_ends_a_copy_and_undoes_it(raw_server: RawServer, database: str) -> None:
    connection = raw_server.connect(database=database)
    connection.query("create table t (a int)")
    with pytest.raises(FailureError, match="invalid input syntax for type integer") as caught:
        connection.copy_in("copy t from stdin", b"1\n2\nthree\n" + b"4\n" * 2_000_000)
    assert caught.value.sqlstate == "22P02"
    assert "COPY t, line 3" in str(caught.value)
    assert connection.query("select count(*) from t") == [("0",)]


def test_a_server_full_of_notices_does_not_stop_a_copy(raw_server: RawServer, database: str) -> None:
    connection = raw_server.connect(database=database)
    connection.query(
        "create table t (a int);"
        "create function tell() returns trigger language plpgsql as"
        " $$begin raise notice '%', repeat('x', 1000); return new; end$$;"
        "create trigger tell before insert on t for each row execute function tell()"
    )
    assert connection.copy_in("copy t from stdin", b"1\n" * 60_000) == 60_000


def test_copy_in_of_something_else_is_refused_and_harmless(raw_server: RawServer) -> None:
    connection = raw_server.connect()
    with pytest.raises(FailureError, match="not COPY … FROM STDIN"):
        connection.copy_in("select 1", b"1\n")
    with pytest.raises(FailureError, match="does not exist"):
        connection.copy_in("copy nothing from stdin", b"1\n")
    with pytest.raises(FailureError, match="only through copy_in"):
        connection.query("create temp table t (a int); copy t from stdin")
    assert connection.query("select 1") == [("1",)]


def test_another_thread_cancels_a_statement(raw_server: RawServer) -> None:
    connection, observer = raw_server.connect(), raw_server.connect()

    def cancel_when_it_runs() -> None:
        running = f"select 1 from pg_stat_activity where pid = {connection.backend_pid} and state = 'active'"
        while not observer.query(running):
            time.sleep(0.01)
        connection.cancel()

    thread = threading.Thread(target=cancel_when_it_runs)
    thread.start()
    with pytest.raises(FailureError, match="canceling statement due to user request") as caught:
        connection.query("select pg_sleep(600)")
    thread.join()
    assert caught.value.sqlstate == "57014"
    assert connection.query("select 1") == [("1",)]


INTERRUPTED = """
import sys
from ironbench import _core
connection = _core.Connection(sys.argv[1].encode())
print(connection.backend_pid, flush=True)
try:
    connection.query("select pg_sleep(600)")
except KeyboardInterrupt:
    try:
        print(connection.query("select 7"))
    except Exception as error:
        print(error)
"""


def sleeping_child(server: RawServer, observer: _core.Connection) -> tuple[subprocess.Popen[str], int, str]:
    """Returns a process that executes a long statement, the pid of its backend, and a query for whether the statement
    is running."""
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, json.dumps(server.connection())], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    backend = int(child.stdout.readline())
    sleeping = f"select 1 from pg_stat_activity where pid = {backend} and wait_event = 'PgSleep'"
    while not observer.query(sleeping):
        time.sleep(0.01)
    return child, backend, sleeping


def test_ctrl_c_ends_a_long_statement_on_both_sides(raw_server: RawServer) -> None:
    observer = raw_server.connect()
    child, _, sleeping = sleeping_child(raw_server, observer)
    child.send_signal(signal.SIGINT)
    assert child.communicate()[0].strip() == "[('7',)]"
    assert child.returncode == 0
    assert not observer.query(sleeping)


def test_ctrl_c_does_not_wait_for_a_server_that_does_not_answer(raw_server: RawServer) -> None:
    child, backend, _ = sleeping_child(raw_server, raw_server.connect())
    os.kill(backend, signal.SIGSTOP)
    try:
        child.send_signal(signal.SIGINT)
        assert "the connection is closed" in child.communicate()[0]
        assert child.returncode == 0
    finally:
        os.kill(backend, signal.SIGCONT)


def test_ctrl_c_ends_waiting_for_a_server_that_does_not_let_in() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        plan = {"host": "127.0.0.1", "port": listener.getsockname()[1], "user": "u", "database": "d"}
        program = "import sys; from ironbench import _core; _core.Connection(sys.argv[1].encode())"
        child = subprocess.Popen([sys.executable, "-c", program, json.dumps(plan)], stderr=subprocess.PIPE, text=True)
        client, _ = listener.accept()
        client.recv(1)
        child.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in child.communicate()[1]
        client.close()


def killed_while_it_waits(server: RawServer, connection: _core.Connection, victim: int) -> FailureError:
    observer = server.connect()

    def kill() -> None:
        running = f"select 1 from pg_stat_activity where pid = {connection.backend_pid} and wait_event = 'PgSleep'"
        while not observer.query(running):
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(FailureError) as caught:
        connection.query("select pg_sleep(600)")
    thread.join()
    return caught.value


@pytest.mark.parametrize("road", [UNIX, TCP])
def test_a_server_killed_in_the_middle_of_a_statement_is_named(road: str) -> None:
    with RawServer() as server:
        connection = at(server, road)
        assert server.process is not None
        error = killed_while_it_waits(server, connection, server.process.pid)
        assert error.subject.startswith("PostgreSQL server at ")
        assert str(server.port) in error.subject
        assert "select pg_sleep(600)" in error.cause
        assert "log" in error.hint
        with pytest.raises(FailureError, match="the connection is closed"):
            connection.query("select 1")


def test_a_session_that_a_crash_elsewhere_ended_says_why() -> None:
    with RawServer() as server:
        connection, other = server.connect(), server.connect()
        error = killed_while_it_waits(server, connection, other.backend_pid)
        assert "because of crash of another server process" in str(error)
        assert error.sqlstate == "57P02"
        # If PostgreSQL 18 is ended within milliseconds after a crash, it leaves shared memory behind.
        server.wait()


def test_a_session_ended_by_the_administrator_says_so(raw_server: RawServer) -> None:
    connection = raw_server.connect()
    raw_server.connect().query(f"select pg_terminate_backend({connection.backend_pid}, 5000)")
    with pytest.raises(FailureError, match="terminating connection due to administrator command") as caught:
        connection.query("select 1")
    assert caught.value.sqlstate == "57P01"


@pytest.mark.parametrize("sslmode", ["disable", "prefer"])
def test_something_that_is_no_postgres_is_recognised(sslmode: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(1000)
                client.sendall(b"\xff\xff\xff\xff400 Bad Request\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        plan = {"host": "127.0.0.1", "port": port, "user": "u", "database": "d", "sslmode": sslmode}
        with pytest.raises(FailureError, match="not a PostgreSQL message") as caught:
            _core.Connection(json.dumps(plan).encode())
        thread.join()
    assert "check host and port" in caught.value.hint
