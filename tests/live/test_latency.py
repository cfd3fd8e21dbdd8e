"""`--latency`: a relay adds a round-trip time to the clients' connections, and to nothing else."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import own_server
import pytest
from factories import rarely_mariadb, require_installed
from patience import eventually
from raw_server import PASSWORD, RawServer, free_port
from test_transaction_log import lines
from tls_proxy import CERTIFICATES, TlsProxy
from user import User

from ironbench import _core, engines
from ironbench.engines.server_session import ServerSession
from ironbench.errors import FailureError, InputError
from ironbench.host import processes
from ironbench.model.system import System

pytestmark = pytest.mark.live

STATEMENTS = 5
LATENCY_S = 0.004
SCRIPT = "SELECT 1;\n" * STATEMENTS


@contextmanager
def connected(dsn: str, latency_s: float = LATENCY_S) -> Iterator[ServerSession]:
    """A session with an existing server, to which clients have the latency."""
    system, secrets = engines.get("postgres").validated(System("postgres", "x", dsn=dsn), 2)
    session = engines.get("postgres").start(system, secrets, 2)
    assert isinstance(session, ServerSession)
    try:
        with session.delayed(latency_s, ()):
            yield session
    finally:
        session.stop()


def relays(parent: int | None = None) -> list[int]:
    """Returns the process ids of relays among the children of a process."""
    pids = processes.children(os.getpid() if parent is None else parent)
    return [pid for pid in pids if b"host.relay" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@rarely_mariadb("postgres")
def test_each_statement_takes_at_least_the_latency_longer(user: User, place: Path, engine: str) -> None:
    require_installed(engine)
    script, log = place / "five.sql", place / "log"
    script.write_text(SCRIPT)
    user.measured(
        *("run", "script", str(script), "--engine", engine, "--data", str(place / "d")),
        *("--clients", "3", "--transactions", "20", "--warmup", "0s"),
        *("--latency", "4ms", "--log-transactions", str(log)),
    )
    times_s = [(line.time or 0) / 1e6 for line in lines(log)]
    assert len(times_s) == 60
    assert min(times_s) >= STATEMENTS * LATENCY_S - 1e-6  # the log has whole microseconds
    assert sorted(times_s)[30] < 10 * STATEMENTS * LATENCY_S
    (record,) = user.records()
    assert record["system"]["latency_s"] == LATENCY_S
    assert record["conditions"]["latency"] == "4.00 ms per round trip, by a relay over Unix socket"
    assert record["metrics"]["added_latency_s"] >= LATENCY_S
    assert 0 < record["metrics"]["relay_busiest_thread_share"] <= record["metrics"]["relay_cpu_cores"] + 1e-9
    assert record["budget"]["relay"] > 0
    assert user.nothing_runs()


def test_the_report_names_the_latency_and_repeats_it(user: User, place: Path) -> None:
    user.measured(
        *("run", "select-only", "--engine", "postgres", "--data", str(place / "d")),
        *("--latency", "0.5ms", "--duration", "0.5s", "--warmup", "0s", "--label", "near"),
    )
    told = user("report", "-o", str(place / "r.md"))
    assert told.code == 0, told.stderr
    report = (place / "r.md").read_text()
    assert "relay added 500 µs of network latency to each round trip" in report
    assert "--latency 0.5ms" in report


def test_only_clients_have_the_latency(raw_server: RawServer) -> None:
    with connected(f"postgresql://postgres@127.0.0.1:{raw_server.port}/postgres", 0.1) as session:
        began = time.monotonic()
        assert session.query("select 1") == [("1",)]
        assert time.monotonic() - began < 0.1
        began = time.monotonic()
        line = session.line()
        assert time.monotonic() - began >= 0.2  # the handshake, and authentication
        _, sent_s, answered_s = line.measure("select 1")
        assert answered_s - sent_s >= 0.1
        line.close()
    assert "relay" not in session.target()["connection"]
    assert relays() == []


@pytest.mark.parametrize("host", ["127.0.0.1", "socket"])
def test_a_statement_over_the_relay_can_be_cancelled(raw_server: RawServer, host: str) -> None:
    where = f"127.0.0.1:{raw_server.port}" if host == "127.0.0.1" else f":{raw_server.port}"
    more = "" if host == "127.0.0.1" else f"?host={raw_server.host}"
    with connected(f"postgresql://postgres@{where}/postgres{more}") as session:
        assert session.on_socket == (host == "socket")
        line = session.line()
        threading.Timer(0.2, line.cancel).start()
        with pytest.raises(FailureError) as caught:
            line.measure("select pg_sleep(60)")
        assert caught.value.sqlstate == "57014"
        line.close()


def test_tls_passes_through_and_the_host_of_the_dsn_is_verified(raw_server: RawServer) -> None:
    root = CERTIFICATES / "root.crt"
    with TlsProxy(f"{raw_server.host}/.s.PGSQL.{raw_server.port}") as proxy:
        known = f"sslmode=verify-full&sslrootcert={root}"
        with connected(f"postgresql://postgres@localhost:{proxy.port}/postgres?{known}") as session:
            before = proxy.handshakes
            line = session.line()
            assert line.query("select 1") == [("1",)]
            line.close()
            assert proxy.handshakes == before + 1
        with (
            pytest.raises(InputError, match="not valid for name"),
            connected(f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?{known}"),
        ):
            pass


def test_a_password_in_clear_is_judged_by_the_servers_address(raw_server: RawServer) -> None:
    """A password may be sent in clear text to a server on loopback. The relay's own address, which is always local, is
    not considered."""
    with connected(f"postgresql://cleartext_user:{PASSWORD}@127.0.0.1:{raw_server.port}/postgres") as session:
        line = session.line()
        assert line.query("select current_user") == [("cleartext_user",)]
        line.close()
        connection = session.target()["connection"] | {"host": "192.0.2.1", "connect_timeout_s": 1.0}
        with pytest.raises(FailureError, match=r"192\.0\.2\.1"):
            _core.Connection(json.dumps(connection).encode())


def test_a_server_that_is_gone_is_reported_as_without_a_relay(raw_server: RawServer) -> None:
    with connected(f"postgresql://postgres@127.0.0.1:{raw_server.port}/postgres") as session:
        unused = free_port()
        connection = session.target()["connection"] | {"port": unused}
        with pytest.raises(FailureError, match="connection refused: no server listens there") as caught:
            _core.Connection(json.dumps(connection).encode())
        assert f"127.0.0.1:{unused}" in caught.value.subject


def test_a_trial_whose_relay_dies_names_it_as_the_cause(user: User, place: Path) -> None:
    words = ("run", "select-only", "--engine", "postgres", "--data", str(place / "d"), "--latency", "1ms")
    with user.begun(*words, "--duration", "60s", "--warmup", "0s", "-P", "1") as run:
        run.wait_for("progress: 1")
        (relay,) = relays(run.process.pid)
        os.kill(relay, signal.SIGKILL)
        told, _ = run.end()
    (record,) = user.records()
    assert record["status"] == "failed" and told.code == 1
    assert "latency relay: the process was killed by SIGKILL during the trial" in told.stderr
    assert user.nothing_runs()


def test_no_relay_outlives_ironbench(user: User, place: Path) -> None:
    words = ("run", "select-only", "--engine", "postgres", "--data", str(place / "d"), "--latency", "1ms")
    with user.begun(*words, "--duration", "60s", "--warmup", "0s", "-P", "1") as run:
        run.wait_for("progress: 1")
        (relay,) = map(processes.identify, relays(run.process.pid))
        assert relay is not None
        run.process.kill()
        assert eventually(lambda: not relay.alive())
    assert eventually(user.nothing_runs)


@rarely_mariadb("postgres")
def test_after_a_restart_clients_have_the_latency_again(place: Path, engine: str) -> None:
    require_installed(engine)
    session = own_server.start(own_server.system(place / "d", engine))
    try:
        for _ in range(2):
            with session.delayed(0.05, ()):
                line = session.line()
                _, sent_s, answered_s = line.measure("select 1")
                assert answered_s - sent_s >= 0.05
                line.close()
            session.restart()
    finally:
        session.stop()
