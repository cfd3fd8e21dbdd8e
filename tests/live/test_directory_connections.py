"""Clients of a directory that close their connection after a number of requests and open a new one."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import launch
import pytest
from directory_server import BASE, CERTIFICATES, DirectoryServer, load, serving, started
from factories import require_installed

from ironbench import _core
from ironbench.engines.slapd import dsn
from ironbench.engines.slapd.session import SlapdSession
from ironbench.model.system import Load
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads.base import ScriptSource

pytestmark = pytest.mark.live
SEARCH = "search uid=user.1,ou=directory,;"
TOTAL = "search cn=Total,cn=Connections,cn=Monitor?monitorCounter?base"


@pytest.fixture(scope="session")
def server(fast_directory: Path) -> Iterator[DirectoryServer]:
    require_installed("slapd")
    with serving(fast_directory, "slapd-connections") as server:
        yield server


def driven(session: SlapdSession, script: str, load: Load, reconnect: int, io: str = "auto") -> dict[str, Any]:
    tasks, load = Tasks([ScriptSource("s", script, 1)]), replace(load, reconnect=reconnect)
    summary: dict[str, Any] = json.loads(_core.drive(compiled_plan(session.target(io=io), tasks, load, ())).summary)
    return summary


def opened(server: DirectoryServer) -> int:
    """Returns the number of connections that the server has accepted so far."""
    return int(server.session.query(TOTAL)[0][1] or 0)


@pytest.mark.parametrize("io", ["io_uring", "epoll"])
@pytest.mark.parametrize("requests", [1, 3])
def test_a_client_opens_a_new_connection_after_so_many_requests(
    server: DirectoryServer, io: str, requests: int
) -> None:
    before = opened(server)
    load = Load(clients=3, duration_s=None, transactions=200, seed=5)
    summary = driven(server.session, SEARCH, load, requests, io)
    expected = 3 * (199 // requests)
    assert (summary["completed"], summary["errors"]) == (600, {}), summary
    assert summary["reconnects"] == expected and summary["reconnects_s"] > 0
    # The server also counts the clients' first connections; the connection used here existed before.
    assert opened(server) - before == 3 + expected


def test_a_connection_is_never_changed_inside_a_transaction(server: DirectoryServer) -> None:
    """This includes pipelined requests: five of them are answered before the client leaves."""
    script = "\\startpipeline\n" + f"{SEARCH}\n" * 5 + "\\endpipeline"
    load = Load(clients=2, duration_s=None, transactions=50, seed=5)
    summary = driven(server.session, script, load, 3)
    assert (summary["completed"], summary["errors"], summary["reconnects"]) == (100, {}, 2 * 49)


def test_without_the_option_nobody_reconnects(server: DirectoryServer) -> None:
    summary = driven(server.session, SEARCH, Load(clients=2, duration_s=None, transactions=50, seed=5), 0)
    assert (summary["reconnects"], summary["reconnects_s"]) == (0, 0.0)


@pytest.mark.parametrize(
    ("scheme", "words"), [("ldap", "tls=require"), ("ldaps", f"tls_ca={CERTIFICATES / 'root.crt'}")]
)
def test_a_new_connection_has_tls_as_the_first_had(server: DirectoryServer, scheme: str, words: str) -> None:
    who = f"cn=ironbench,{BASE}:{server.session._secrets.password}"
    session = SlapdSession(*dsn.parse(server.dsn(who, words, scheme), {}))
    try:
        load = Load(clients=2, duration_s=None, transactions=20, seed=5)
        summary = driven(session, SEARCH, load, 2)
        assert (summary["completed"], summary["errors"], summary["reconnects"]) == (40, {}, 2 * 9)
    finally:
        session.stop()


def test_in_an_open_loop_what_is_due_meanwhile_waits_and_counts(server: DirectoryServer) -> None:
    load = Load(clients=2, duration_s=1.0, rate=400.0, arrivals="fixed", seed=5)
    summary = driven(server.session, SEARCH, load, 1)
    assert summary["transactions"] + summary["not_started"] + summary["unfinished"] == 400, summary
    # A client reconnects after each transaction, whatever rate a busy machine reaches.
    assert 40 < summary["transactions"] - 4 <= summary["reconnects"] <= summary["transactions"] + 4, summary
    assert summary["errors"] == {}


def test_a_server_that_does_not_take_a_client_again_ends_the_trial(place: Path) -> None:
    with started(place) as session:
        load(session, 5)
        strike = threading.Timer(0.5, os.kill, (session.processes()[0], signal.SIGKILL))
        strike.start()
        plan = Load(clients=4, duration_s=30.0, seed=5)
        summary = driven(session, SEARCH, plan, 1)
        assert summary["aborted"] and summary["elapsed_s"] < 10.0, summary


def test_a_run_says_how_often_its_clients_connected_anew_and_how_long_that_took(place: Path) -> None:
    command = [
        *("run", "directory", "--with", "entries=50", "--with", "reconnect=10", "--data", str(place / "d")),
        *("--clients", "2", "--duration", "1s", "--warmup", "0"),
    ]
    done = launch.run(command, cwd=place)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (record,) = (json.loads(path.read_text()) for path in place.rglob("trials/*/record.json"))
    metrics = record["metrics"]
    assert metrics["reconnects"] == pytest.approx(metrics["transactions"] / 10, abs=3)
    assert 0 < metrics["reconnect_mean_s"] < 1
