"""PostgreSQL's response to a COPY, from a simulated server: a notice may arrive in the same packet."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest

from ironbench import _core

LET_IN = b"R\0\0\0\x08\0\0\0\0" + b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x02" + b"Z\0\0\0\x05I"
NOTICE = b"N\0\0\0\x1fSNOTICE\0C00000\0Mwatch out\0\0"
PARAMETER = b"S\0\0\0\x0eTimeZone\0\0"
INVITATION = b"G\0\0\0\x07\0\0\0"
COPY_DONE = b"c\0\0\0\x04"
COPIED = b"C\0\0\0\x0bCOPY 2\0" + b"Z\0\0\0\x05I"


def serve(listening: socket.socket, invitation: bytes) -> None:
    client, _ = listening.accept()
    client.settimeout(5)  # a client that waits for bytes it has already read is disconnected
    with client, contextlib.suppress(TimeoutError):
        client.recv(65536)
        client.sendall(LET_IN)
        client.recv(65536)
        client.sendall(invitation)
        data = b""
        while not data.endswith(COPY_DONE) and (piece := client.recv(65536)):
            data += piece
        client.sendall(COPIED)
        client.recv(65536)


@pytest.mark.parametrize("before", [b"", NOTICE, PARAMETER + NOTICE + NOTICE], ids=["alone", "notice", "more"])
def test_an_invitation_right_behind_a_notice_is_heard(before: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening, before + INVITATION), daemon=True).start()
        where = {"host": "127.0.0.1", "port": listening.getsockname()[1], "user": "u", "database": "d"}
        connection = _core.Connection(json.dumps(where | {"sslmode": "disable"}).encode())
        assert connection.copy_in("COPY t FROM STDIN", b"1\n2\n") == 2
        connection.close()
