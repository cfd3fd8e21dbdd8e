"""Sizes that a server announces take no memory: the length of messages is limited, and too long messages are
reported."""

from __future__ import annotations

import json
import random
import resource
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from trial import postgres, run

from ironbench import _core
from ironbench.errors import FailureError

pytestmark = pytest.mark.live

MOST_KIB = 200 << 10
"""Maximum resident memory in KiB; more means that an announced size was allocated."""
LET_IN = b"R\0\0\0\x08\0\0\0\0" + b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x02" + b"Z\0\0\0\x05I"


def announced(tag: bytes) -> bytes:
    """Returns the header and the start of a message of 2 GB."""
    return tag + struct.pack(">i", (1 << 31) - 1) + b"x" * 4096


@contextmanager
def server(greeting: bytes, answer: bytes = b"") -> Iterator[dict[str, Any]]:
    """Greets each client and answers its first message; never closes a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                held.append(client)
                client.recv(65536)
                client.sendall(greeting)
                if answer and client.recv(65536):
                    client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        port = listening.getsockname()[1]
        yield {"host": "127.0.0.1", "port": port, "user": "u", "database": "d", "sslmode": "disable"}
        listening.shutdown(socket.SHUT_RDWR)
        for client in held:
            client.close()


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("tag", [b"R", b"E", b"N", b"S", b"D", b"T"])
def test_a_message_of_2_gb_while_connecting_is_refused_by_its_head(tag: bytes) -> None:
    before = peak_kib()
    with server(announced(tag)) as connection, pytest.raises(FailureError) as refused:
        _core.Connection(json.dumps(connection).encode())
    assert "announced a message of 2147483648 bytes" in str(refused.value)
    assert "check host and port" in refused.value.hint
    assert peak_kib() - before < MOST_KIB


@pytest.mark.parametrize(
    "nonsense",
    [random.Random(1).randbytes(65536), b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"],
    ids=["random", "http", "ssh"],
)
def test_another_program_s_answer_is_refused_with_a_hint_at_host_and_port(nonsense: bytes) -> None:
    before = peak_kib()
    with server(nonsense) as connection, pytest.raises(FailureError) as refused:
        _core.Connection(json.dumps(connection).encode())
    assert "check host and port" in refused.value.hint
    assert peak_kib() - before < MOST_KIB


@pytest.mark.parametrize("tag", [b"D", b"E", b"N", b"C"])
def test_a_message_of_2_gb_in_answer_to_a_query_is_refused_by_its_head(tag: bytes) -> None:
    before = peak_kib()
    with server(LET_IN, announced(tag)) as connection:
        session = _core.Connection(json.dumps(connection).encode())
        with pytest.raises(FailureError, match="announced a message of 2147483648 bytes"):
            session.query("SELECT 1")
    assert peak_kib() - before < MOST_KIB


@pytest.mark.parametrize("io", ["io_uring", "epoll"])
@pytest.mark.parametrize("tag", [b"D", b"E"])
def test_a_message_of_2_gb_in_a_trial_ends_it_with_that_cause(tag: bytes, io: str) -> None:
    before = peak_kib()
    with server(LET_IN, announced(tag)) as connection:
        summary = run(postgres(connection, io=io), "SELECT 1 AS a \\gset\n", clients=1).summary
    assert summary["aborted"] and "announced a message of 2147483648 bytes" in summary["cause"]
    assert peak_kib() - before < MOST_KIB
