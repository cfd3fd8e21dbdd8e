"""A server answers a statement before reading it: the trial ends, and the statement does not count."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from trial import postgres, run

pytestmark = pytest.mark.live

READY = b"Z\0\0\0\x05I"
LET_IN = b"R\0\0\0\x08\0\0\0\0" + READY
DONE = b"C\0\0\0\x0dSELECT 1\0" + READY


def answer(client: socket.socket, ended: threading.Event) -> None:
    with client, contextlib.suppress(OSError):
        client.recv(4096)
        client.sendall(LET_IN)
        client.recv(1, socket.MSG_PEEK)
        client.sendall(DONE)
        ended.wait(60)


@pytest.fixture
def hasty() -> Iterator[int]:
    """The port of a server that accepts everyone and answers without reading."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=answer, args=(client, ended), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("io", ["io_uring", "epoll"])
def test_an_answer_to_a_message_that_has_not_left_ends_the_trial(hasty: int, io: str) -> None:
    connection = {"host": "127.0.0.1", "port": hasty, "user": "u", "database": "d", "sslmode": "disable"}
    script = f"SELECT '{'a' * (16 << 20)}';\n"
    trial = run(postgres(connection, "simple", io), script, clients=1, stop={"duration_s": 20.0})
    assert trial.summary["aborted"]
    assert "before it had read" in trial.summary["cause"]
    assert trial.summary["completed"] == 0
