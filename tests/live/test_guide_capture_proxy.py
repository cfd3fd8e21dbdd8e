"""The commands of docs/how/capture-proxy.md and capture-proxy-tls.md, with the addresses of servers here."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from own_data import shop
from patience import eventually
from proxied import recorded
from raw_mysql import PASSWORD, RawMysql
from raw_server import RawServer, free_port
from tls_proxy import CERTIFICATES, TlsProxy
from user import User, blocks

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture-proxy")]


def commands(page: str) -> list[list[str]]:
    """Returns the words of the page's commands, without the program."""
    return [shlex.split(line)[1:] for block in blocks(f"how/{page}", "sh") for line in block.splitlines()]


def test_the_commands_of_the_page_work_in_their_order(user: User) -> None:
    start, show, finish = commands("capture-proxy")
    secure, *_ = commands("capture-proxy-tls")
    assert (start[0], show[0], finish[0], secure[0]) == ("capture", "show", "capture", "capture")
    with RawServer() as server:
        shop(server)
        port = free_port()
        here = {
            "127.0.0.1:6432": f"127.0.0.1:{port}",
            "postgresql://db.example.com:5432/shop": f"postgresql://127.0.0.1:{server.port}/shop?sslmode=disable",
        }
        words = [here.get(word, word) for word in start]
        with user.begun(*words) as begun:
            begun.wait_for("listening on ")
            server.connect(host="127.0.0.1", port=port, database="shop").query("select count(*) from item")
            told, _ = begun.end(signal.SIGINT)
            assert told.code == 0, told.stderr
        assert "select count(*) from item" in user(*show).stdout
        (user.home / "shop.capture").unlink()
        with user.begun(*words) as begun:
            begun.wait_for("listening on ")
            server.connect(host="127.0.0.1", port=port, database="shop").query("select 'before the kill'")
            assert eventually(lambda: b"before the kill" in stored(user.home))
            os.kill(begun.process.pid, signal.SIGKILL)
            begun.process.wait()
        assert user(*finish).code == 0
        assert recorded(user, "text") == [("select 'before the kill'",)]
        (user.home / "shop.capture").unlink()
        with TlsProxy(f"{server.host}/.s.PGSQL.{server.port}") as beyond:
            root = CERTIFICATES / "root.crt"
            dsn = f"postgresql://localhost:{beyond.port}/shop?sslmode=verify-full&sslrootcert={root}"
            here |= {
                "postgresql://db.example.com/shop?sslmode=verify-full": dsn,
                "proxy.crt": str(CERTIFICATES / "server.crt"),
                "proxy.key": str(CERTIFICATES / "server.key"),
            }
            assert set(here) - {"postgresql://db.example.com:5432/shop"} <= set(secure)
            with user.begun(*[here.get(word, word) for word in secure]) as begun:
                begun.wait_for("listening on ")
                client = server.connect(host="127.0.0.1", port=port, database="shop", sslmode="require")
                assert client.tls and client.query("select 'over TLS'") == [("over TLS",)]
                client.close()
                assert begun.end(signal.SIGTERM)[0].code == 0
        assert recorded(user, "text") == [("select 'over TLS'",)]


@pytest.mark.skipif(shutil.which("mariadb") is None, reason="needs Debian's package mariadb-client-core")
def test_a_client_of_mariadb_reaches_its_server_over_tls(user: User, raw_mysql: RawMysql) -> None:
    _, start, connect = commands("capture-proxy-tls")
    port = str(free_port())
    root = CERTIFICATES / "root.crt"
    here = {
        "127.0.0.1:6432": f"127.0.0.1:{port}",
        "mysql://db.example.com/shop?tls=verify-full": (
            f"mysql://root@localhost:{raw_mysql.port}/d?tls=verify-full&tls_ca={root}"
        ),
        "proxy.crt": str(CERTIFICATES / "server.crt"),
        "proxy.key": str(CERTIFICATES / "server.key"),
    }
    assert here.keys() <= set(start)
    with user.begun(*[here.get(word, word) for word in start]) as begun:
        begun.wait_for("listening on ")
        there = {"6432": port, "proxy.crt": str(root), "shop": "d"}
        words = ["mariadb", "--no-defaults", *[there.get(word, word) for word in connect]]
        words += ["--user=tls_user", f"--password={PASSWORD}", "--execute=select 'over TLS'"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert begun.end(signal.SIGTERM)[0].code == 0
    assert recorded(user, "text", "text like '%over TLS%'") == [("select 'over TLS'",)]


def stored(home: Path) -> bytes:
    """Returns the bytes of the unfinished capture."""
    return b"".join(path.read_bytes() for path in home.glob("shop.capture.partial*"))
