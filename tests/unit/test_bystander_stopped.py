"""A bystander whose new connection is not answered ends when its trial is stopped; the server is made of a socket."""

from __future__ import annotations

import json
import socket
import threading
import time

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


def serve(listening: socket.socket) -> None:
    """Lets in who comes first, one for each kind of transaction; whoever comes later is taken and not answered."""
    for _ in range(2):
        client, _ = listening.accept()
        threading.Thread(target=answer, args=(client,), daemon=True).start()


def test_a_connection_that_is_not_answered_is_given_up_when_the_trial_is_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        where = {"host": "127.0.0.1", "port": listening.getsockname()[1], "user": "u", "database": "d"}
        connection = where | {"sslmode": "disable"}
        plan = {
            "engine": {"kind": "postgres", "connection": connection, "protocol": "simple", "io": "auto"},
            "work": {"kind": "bystander", "select": "SELECT v FROM t WHERE id =", "keys": 10},
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
        summary = json.loads(_core.drive(json.dumps(plan).encode(), progress).summary)
        # Connecting alone would wait for 10 s.
        assert time.monotonic() - began < 4
    assert summary["cut_short"] and not summary["aborted"]
    assert (summary["failed"], summary["unfinished"]) == (0, 1)
    assert summary["transactions"] > 0
