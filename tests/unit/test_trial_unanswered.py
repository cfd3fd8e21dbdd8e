"""A trial can be stopped although a connection gets no answer; the server is simulated."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ironbench import _core

LET_IN = b"R\0\0\0\x08\0\0\0\0" + b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x02" + b"Z\0\0\0\x05I"
DESCRIBED = b"T\0\0\0\x1a\0\x01v\0" + bytes(18)
ROW = DESCRIBED + b"D\0\0\0\x0b\0\x01\0\0\0\x011" + b"C\0\0\0\x0dSELECT 1\0" + b"Z\0\0\0\x05I"
STOPPED_AFTER_S = 0.5


def answer(client: socket.socket) -> None:
    with client:
        client.recv(65536)
        client.sendall(LET_IN)
        while client.recv(65536)[:1] == b"Q":
            client.sendall(ROW)


@contextmanager
def server(let_in: int) -> Iterator[dict[str, Any]]:
    """Accepts the first `let_in` connections and answers their queries; later ones are accepted but not answered."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(let_in):
                client, _ = listening.accept()
                threading.Thread(target=answer, args=(client,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        where = {"host": "127.0.0.1", "port": listening.getsockname()[1], "user": "u", "database": "d"}
        connection = where | {"sslmode": "disable"}
        yield {"kind": "postgres", "connection": connection, "protocol": "simple", "io": "auto"}


def stopped(engine: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Returns the summary of a trial that is stopped early and ends soon after, although just connecting would take 10
    s."""
    plan: dict[str, Any] = {
        "engine": engine,
        "scripts": [],
        "variables": [],
        "clients": 2,
        "threads": 2,
        "seed": 1,
        "schedule": {"kind": "open", "rate": 40.0, "arrivals": "fixed"},
        "stop": {"duration_s": 60.0},
        "warmup_s": 0.0,
        "max_tries": 1,
        "on_error": "continue",
        "observers": [],
    }
    progress = _core.Progress()
    timer = threading.Timer(STOPPED_AFTER_S, progress.stop)
    timer.start()
    began = time.monotonic()
    summary: dict[str, Any] = json.loads(_core.drive(json.dumps(plan | changes).encode(), progress).summary)
    assert time.monotonic() - began < 4
    assert summary["cut_short"] and not summary["aborted"]
    return summary


def test_a_new_connection_of_a_bystander_that_is_not_answered_is_given_up_and_no_failure() -> None:
    work = {"kind": "bystander", "select": "SELECT v FROM t WHERE id =", "keys": 10}
    with server(let_in=2) as engine:
        summary = stopped(engine, work=work)
    assert (summary["failed"], summary["unfinished"]) == (0, 1)
    assert summary["transactions"] > 0


def test_a_connection_of_the_observers_that_is_not_answered_is_given_up() -> None:
    observers = [{"name": "activity", "kind": "sql", "target": "SELECT 1", "period_s": 1.0}]
    scripts = [{"name": "s", "text": "SELECT 1;", "weight": 1}]
    with server(let_in=2) as engine:
        summary = stopped(engine, scripts=scripts, observers=observers)
    assert summary["transactions"] == 0
