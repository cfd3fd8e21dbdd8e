"""External events during a trial: the server dies or hangs, or the trial is stopped."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer
from trial import Trial, plan, postgres, run, run_and_meanwhile

from ironbench import _core

pytestmark = pytest.mark.live

TRANSPORTS = ["io_uring", "epoll"]
LONG = {"stop": {"duration_s": 120.0}}


@pytest.fixture
def mortal() -> Iterator[RawServer]:
    """A server that the test may kill."""
    with RawServer() as server:
        yield server


def backends(server: RawServer, database: str) -> list[int]:
    session = server.connect()
    try:
        rows = session.query(
            f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        )
        return [int(pid or 0) for (pid,) in rows]
    finally:
        session.close()


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def kept(trial: Trial) -> None:
    """Checks that everything measured before the early end is stored."""
    summary = trial.summary
    assert summary["transactions"] > 0
    assert 0 < summary["elapsed_s"] < 60
    assert trial.histograms["service_time"].count == summary["transactions"] == sum(trial.column("transactions"))


@pytest.mark.parametrize("io", TRANSPORTS)
def test_a_server_that_dies_ends_the_trial_and_all_measured_so_far_is_kept(mortal: RawServer, io: str) -> None:
    def kill(_progress: _core.Progress) -> None:
        assert mortal.process is not None
        mortal.process.send_signal(signal.SIGQUIT)

    trial = run_and_meanwhile(kill, postgres(mortal.connection(), io=io), "SELECT 1;\n", threads=2, **LONG)
    kept(trial)
    assert trial.summary["aborted"] and not trial.summary["cut_short"]
    # The server's last message can be lost if its socket is reset before the message is read.
    assert re.search("terminating connection|closed the connection|reset", trial.summary["cause"])


def test_a_session_that_is_terminated_ends_the_trial_with_the_servers_words(
    raw_server: RawServer, database: str
) -> None:
    def terminate(_progress: _core.Progress) -> None:
        pid = backends(raw_server, database)[0]
        raw_server.connect().query(f"SELECT pg_terminate_backend({pid})")

    for io in TRANSPORTS:
        engine = postgres(raw_server.connection(database=database), io=io)
        trial = run_and_meanwhile(terminate, engine, "SELECT 1;\n", on_error="stop", **LONG)
        kept(trial)
        assert trial.summary["aborted"]
        assert "terminating connection due to administrator command" in trial.summary["cause"]


@pytest.mark.alone
@pytest.mark.parametrize("io", TRANSPORTS)
def test_response_times_of_an_open_loop_follow_the_backlog_of_a_server_that_stood_still(
    raw_server: RawServer, database: str, io: str
) -> None:
    def stand_still(_progress: _core.Progress) -> None:
        with stopped(backends(raw_server, database)):
            time.sleep(1.0)

    rate, clients = 400, 4
    trial = run_and_meanwhile(
        stand_still,
        postgres(raw_server.connection(database=database), io=io),
        "SELECT 1;\n",
        clients=clients,
        schedule={"kind": "open", "rate": rate, "arrivals": "fixed"},
        stop={"duration_s": 4.0},
    )
    response, service = trial.histograms["response_time"], trial.histograms["service_time"]

    def slower_than(histogram: _core.Histogram, seconds: float) -> int:
        return sum(n for low, _high, n in histogram.buckets() if low >= seconds)

    summary = trial.summary
    assert summary["transactions"] + summary["unfinished"] + summary["not_started"] == rate * 4
    # Transactions scheduled during the stop waited for its end; if scheduled in its first half, they waited for more
    # than half of the stop.
    assert response.max_s >= 0.99
    assert 0.4 * rate <= slower_than(response, 0.5) <= 0.9 * rate
    # Only transactions in progress were served slowly.
    assert slower_than(service, 0.5) <= clients


@pytest.mark.alone
@pytest.mark.parametrize("io", TRANSPORTS)
def test_stop_ends_a_trial_whose_server_hangs(raw_server: RawServer, database: str, io: str) -> None:
    took = 0.0

    def hang_and_stop(progress: _core.Progress) -> None:
        nonlocal took
        with stopped(backends(raw_server, database)):
            time.sleep(0.2)
            began = time.monotonic()
            progress.stop()
            while progress.phase != "done":
                assert time.monotonic() - began < 30
                time.sleep(0.01)
            took = time.monotonic() - began

    engine = postgres(raw_server.connection(database=database), io=io)
    trial = run_and_meanwhile(hang_and_stop, engine, "SELECT 1;\n", **LONG)
    kept(trial)
    summary = trial.summary
    assert took < 1.0
    assert summary["cut_short"] and not summary["aborted"]
    assert summary["unfinished"] == summary["server_commits_uncertain"] == 4


INTERRUPTED = """
import json, sys
from ironbench import _core
progress = _core.Progress()
print("ready", flush=True)
result = _core.drive(sys.argv[1].encode(), progress)
print(json.dumps(json.loads(result.summary)), flush=True)
"""


def interrupt(plan: bytes, arrange: Callable[[], Any]) -> tuple[dict[str, Any], float]:
    """Runs a plan in a separate process and sends it Ctrl-C; returns its summary and the seconds until its end."""
    import json

    command = [sys.executable, "-c", INTERRUPTED, plan.decode()]
    environment = os.environ | {"PYTHONPATH": str(Path(_core.__file__).parent.parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
            arrange()
            began = time.monotonic()
            child.send_signal(signal.SIGINT)
            summary = json.loads(child.stdout.readline())
            return summary, time.monotonic() - began
        finally:
            child.kill()


@pytest.mark.alone
def test_ctrl_c_ends_the_trial_within_a_second_and_keeps_it_as_cut_short(raw_server: RawServer, database: str) -> None:
    engine = postgres(raw_server.connection(database=database))
    summary, took = interrupt(plan(engine, "SELECT 1;\n", **LONG), lambda: time.sleep(1.0))
    assert summary["cut_short"] and not summary["aborted"]
    assert summary["transactions"] > 0
    assert took < 1.0


@pytest.mark.alone
def test_ctrl_c_is_heard_when_the_server_hangs(raw_server: RawServer, database: str) -> None:
    pids: list[int] = []

    def hang() -> None:
        time.sleep(1.0)
        pids.extend(backends(raw_server, database))
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    engine = postgres(raw_server.connection(database=database))
    try:
        summary, took = interrupt(plan(engine, "SELECT 1;\n", **LONG), hang)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert len(pids) == 4
    assert summary["cut_short"]
    assert took < 1.0


def test_transactions_under_way_when_the_window_closes_are_unfinished_but_may_end(
    raw_server: RawServer, database: str
) -> None:
    engine = postgres(raw_server.connection(database=database))
    summary = run(engine, "SELECT pg_sleep(0.4);\n", stop={"duration_s": 1.0}).summary
    assert (summary["transactions"], summary["completed"], summary["unfinished"]) == (8, 12, 4)
    assert (summary["commits"], summary["server_commits_uncertain"]) == (12, 0)


def test_a_sampler_watches_the_server_meanwhile(raw_server: RawServer, database: str) -> None:
    connection = raw_server.connection(database=database)
    observers = [
        {"name": "stat", "kind": "file", "target": "/proc/stat", "period_s": 0.1},
        {"name": "activity", "kind": "sql", "target": "SELECT count(*) FROM pg_stat_activity", "period_s": 0.1},
    ]
    trial = run(postgres(connection), "SELECT 1;\n", observers=observers, stop={"duration_s": 0.5})
    assert {"stat", "activity"} <= trial.result.samples.keys()
    times = [t for t, _ in trial.result.samples["stat"]]
    assert times[0] < 0.4 and times[-1] >= 0.5
    assert trial.summary["observer_cpu_s"] > 0


@pytest.mark.alone
def test_stop_ends_a_trial_that_hangs_while_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = {"host": "127.0.0.1", "port": silent.getsockname()[1], "user": "u", "database": "d"}
        progress = _core.Progress()
        timer = threading.Timer(0.3, progress.stop)
        timer.start()
        began = time.monotonic()
        trial = Trial(_core.drive(plan(postgres(connection), "SELECT 1;\n", **LONG), progress))
        assert time.monotonic() - began < 1.3
    assert trial.summary["cut_short"] and trial.summary["transactions"] == 0
