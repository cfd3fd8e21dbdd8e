"""What the application and the capture get when a server, a client, the disk or the proxy fails."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from own_data import shop
from patience import eventually
from proxied import Proxied, proxied, recorded
from raw_server import RawServer, binary
from user import User

from ironbench.errors import FailureError
from ironbench.workloads.capture import file

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture-proxy")]

MUCH = 100 << 20
"""Number of bytes that an endless message consists of."""
BOUND_KB = 40 << 10
"""Memory that the proxy may need for it."""


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with RawServer() as server:
        shop(server)
        yield server


def noted(user: User) -> dict[str, dict[str, object]]:
    """Returns the values of the capture's notes by code."""
    return {note.code: note.values for note in file.facts(str(user.home / "shop.capture")).notes}


def peak_kb(proxy: Proxied) -> int:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{proxy.begun.process.pid}/status").read_text())
    assert found is not None
    return int(found[1])


def stored(partial: Path) -> bytes:
    """Returns the bytes of an unfinished capture."""
    files = [path for path in (partial, Path(f"{partial}.wal")) if path.exists()]
    return b"".join(path.read_bytes() for path in files)


def raw(proxy: Proxied) -> socket.socket:
    return socket.create_connection((proxy.place["host"], proxy.place["port"]), timeout=20)


def startup(client: socket.socket) -> None:
    body = b"\x00\x03\x00\x00user\0postgres\0database\0shop\0\0"
    client.sendall(struct.pack("!i", len(body) + 4) + body)


def test_a_server_restarts_under_the_proxy(user: User) -> None:
    with RawServer() as server:
        shop(server)
        with proxied(user, server) as proxy:
            connection = proxy.connect(database="shop")
            sleeping = threading.Timer(0.5, lambda: os.kill(server.process.pid, signal.SIGQUIT))
            sleeping.start()
            with pytest.raises(FailureError):
                connection.query("select 'interrupted', pg_sleep(60)")
            sleeping.join()
            server.process.wait(20)
            with pytest.raises(FailureError, match="the proxy cannot connect"):
                proxy.connect(database="shop")
            server.start()
            again = proxy.connect(database="shop")
            assert again.query("select 'after the restart'") == [("after the restart",)]
            again.close()
            proxy.end()
    assert recorded(user, "error", "text like '%interrupted%'")[0][0] in ("57P01", "57P02", "08006")
    assert recorded(user, "error", "text like '%after the restart%'") == [(None,)]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x7f\xff\xff\xff",
        b"\0\0\0\x07\x01\x02\x03",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"\0\0\0\x08\x04\xd2\x16\x2f" * 3,
    ],
    ids=["length", "short", "http", "tls", "requests"],
)
def test_a_client_that_sends_nonsense_is_closed(user: User, server: RawServer, sent: bytes) -> None:
    with proxied(user, server) as proxy:
        client = raw(proxy)
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(100):
                pass
        client.close()
        assert proxy.connect(database="shop").query("select 1") == [("1",)]
        proxy.end()


def test_an_endless_message_of_a_client_needs_no_memory(user: User, server: RawServer) -> None:
    with proxied(user, server) as proxy:
        assert proxy.connect(database="shop").query("select 1") == [("1",)]
        before = peak_kb(proxy)
        client = raw(proxy)
        startup(client)
        client.recv(1 << 16)
        client.sendall(b"Q" + struct.pack("!i", 1 << 29))
        piece = b"x" * (1 << 20)
        for _ in range(MUCH >> 20):
            client.sendall(piece)
        assert proxy.connect(database="shop").query("select 2") == [("2",)]
        assert peak_kb(proxy) - before < BOUND_KB
        client.close()
        proxy.end()
    assert {text for (text,) in recorded(user, "text")} == {"select 1", "select 2"}


def test_an_endless_message_of_a_server_needs_no_memory(user: User, server: RawServer) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = listener.accept()
                with one, contextlib.suppress(OSError):  # a proxy that starts only connects
                    answer(one)

    def answer(one: socket.socket) -> None:
        one.settimeout(20)
        if one.recv(1 << 16) == b"\0\0\0\x08\x04\xd2\x16\x2f":
            one.sendall(b"N")
            one.recv(1 << 16)
        one.sendall(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")
        one.recv(1 << 16)
        one.sendall(b"D\x7f\xff\xff\xff")
        for _ in range(MUCH >> 20):
            one.sendall(b"x" * (1 << 20))

    threading.Thread(target=serve, daemon=True).start()
    with proxied(user, server, "--to", f"postgresql://127.0.0.1:{listener.getsockname()[1]}/shop") as proxy:
        client = raw(proxy)
        startup(client)
        client.recv(1 << 16)
        before = peak_kb(proxy)
        client.sendall(b"Q\0\0\0\x0dselect 1\0")
        received = 0
        while piece := client.recv(1 << 20):
            received += len(piece)
        client.close()
        assert received > MUCH
        assert peak_kb(proxy) - before < BOUND_KB
        assert eventually((user.home / "shop.capture.partial").exists)
        proxy.end()
    listener.close()
    assert recorded(user, "text, error") == [("select 1", "08006")]


def test_connections_for_replication_pass_and_are_counted(user: User, server: RawServer) -> None:
    with proxied(user, server) as proxy:
        words = f"host={proxy.place['host']} port={proxy.place['port']} user=postgres dbname=shop replication=database"
        command = [binary("psql"), "-X", "-A", "-t", words, "-c", "IDENTIFY_SYSTEM"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.count("|") == 3, done.stderr
        proxy.connect(database="shop").query("select 1")
        proxy.end()
    assert noted(user)["capture-unfollowed"] == {"connections": 1}
    assert recorded(user, "text") == [("select 1",)]


def test_the_application_goes_on_when_the_disk_is_full(
    user: User, server: RawServer, small_disk: Callable[[int], Path]
) -> None:
    disk = small_disk(48)
    output = disk / "shop.capture"
    (user.home / "shop.capture").symlink_to(output)
    with proxied(user, server, output=output) as proxy:
        connection = proxy.connect(database="shop")
        connection.query("select 'stored'")
        assert eventually((disk / "shop.capture.partial").exists)
        (disk / "filler").write_bytes(b"x" * (20 << 20))
        connection.query("begin")
        for number in range(20):
            assert connection.query(f"select {number}, 'not stored'")[0][0] == str(number)
        time.sleep(3)
        connection.query("commit")
        (disk / "filler").unlink()
        time.sleep(3)
        connection.query("select 'stored again'")
        connection.close()
        proxy.end()
    texts = {text for (text,) in recorded(user, "text")}
    assert {"select 'stored'", "select 'stored again'"} <= texts
    lost = noted(user)["capture-lost"]
    assert lost["statements"] == 24 - len(texts)
    left_out = recorded(user, "text, left_out", "text = 'commit'")
    assert all(reason is not None for _, reason in left_out)


def test_a_killed_proxy_closes_connections_and_leaves_a_capture_that_can_be_finished(
    user: User, server: RawServer
) -> None:
    partial = user.home / "shop.capture.partial"
    with proxied(user, server) as proxy:
        connection = proxy.connect(database="shop")
        connection.query("begin")
        connection.query("insert into sale (item) values (1)")
        assert eventually(lambda: b"insert into sale" in stored(partial))
        os.kill(proxy.begun.process.pid, signal.SIGKILL)
        with pytest.raises(FailureError):
            connection.query("commit")
        proxy.begun.process.wait()
    direct = server.connect(database="shop")
    idle = "select count(*) from pg_stat_activity where datname = 'shop' and pid <> pg_backend_pid()"
    assert eventually(lambda: direct.query(idle) == [("0",)])
    direct.close()
    told = user("show", partial.name)
    assert told.code == 2 and "has not been finished" in told.stderr and "ironbench capture" in told.stderr
    told = user("capture", "--listen", "127.0.0.1:0", "--to", "postgresql://127.0.0.1/shop", "-o", "shop.capture")
    assert told.code == 2 and "finish this capture" in told.stderr
    assert user("capture", partial.name, "-o", "shop.capture", "--mask").code == 2
    told = user("capture", partial.name, "-o", "shop.capture")
    assert told.code == 0, told.stderr
    assert not partial.exists()
    assert [text for (text,) in recorded(user, "text")] == ["begin", "insert into sale (item) values (1)"]


def test_an_unfinished_capture_without_statements_is_refused(user: User) -> None:
    duckdb.connect(str(user.home / "shop.capture.partial")).close()
    told = user("capture", "shop.capture.partial", "-o", "shop.capture")
    assert told.code == 2 and "contains no statements" in told.stderr


def test_a_capture_without_statements_is_refused(user: User, server: RawServer) -> None:
    with proxied(user, server) as proxy:
        told, _ = proxy.begun.end(signal.SIGTERM)
    assert told.code == 2 and "no client sent a statement" in told.stderr
    assert not list(user.home.glob("shop.capture*"))


def test_a_capture_may_end_by_itself(user: User, server: RawServer) -> None:
    with proxied(user, server, "--duration", "2s") as proxy:
        proxy.connect(database="shop").query("select 1")
        told, _ = proxy.begun.end()
    assert told.code == 0
    assert recorded(user, "text") == [("select 1",)]


@pytest.mark.long
def test_a_thousand_sessions_are_captured(user: User) -> None:
    (user.home / "one.sql").write_text("select count(*) from item where id = 1;\n")
    with RawServer("max_connections=1100") as server:
        shop(server)
        with proxied(user, server) as proxy:
            proxy.pgbench(user.home / "one.sql", "-c", "1000", "-j", "4", "-t", "5", "-M", "prepared")
            assert peak_kb(proxy) < 1 << 20
            proxy.end()
    assert recorded(user, "count(*), count(distinct session)", "template like '%from item%'") == [(5000, 1000)]
