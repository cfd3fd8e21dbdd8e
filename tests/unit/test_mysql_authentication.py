"""`caching_sha2_password`, with a simulated server, because MySQL is not available everywhere."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ironbench import _core
from ironbench.errors import FailureError, InputError

NONCE = bytes(range(65, 85))
PASSWORD = "a password that is longer than the nonce"
CAPABILITIES = 0x0108_8200 | 1
OK = bytes([0, 0, 0, 2, 0, 0, 0])


def greeting(plugin: str) -> bytes:
    low, high = CAPABILITIES & 0xFFFF, CAPABILITIES >> 16
    head = b"\x0a8.4.2\0" + b"\x07\0\0\0" + NONCE[:8] + b"\0" + low.to_bytes(2, "little") + b"\x2d\2\0"
    return head + high.to_bytes(2, "little") + bytes([21]) + bytes(10) + NONCE[8:] + b"\0" + plugin.encode() + b"\0"


class Line:
    """The server's side of a connection: numbered packets in and out."""

    def __init__(self, client: socket.socket) -> None:
        self.client, self.sequence = client, 0

    def send(self, body: bytes) -> None:
        self.client.sendall(len(body).to_bytes(3, "little") + bytes([self.sequence]) + body)
        self.sequence += 1

    def take(self) -> bytes:
        head = self.exactly(4)
        assert head[3] == self.sequence
        self.sequence += 1
        return self.exactly(int.from_bytes(head[:3], "little"))

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.client.recv(count - len(data))
            assert piece, "the client left"
            data += piece
        return data


def connected(plugin: str, serve: Callable[[Line, bytes], None]) -> str | None:
    """Returns the version reported by a connection to a server that offers `plugin` and then runs `serve`."""
    failed: list[BaseException] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            try:
                client, _ = listening.accept()
                with client:
                    line = Line(client)
                    line.send(greeting(plugin))
                    serve(line, line.take())
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        place: dict[str, Any] = {"host": "127.0.0.1", "port": listening.getsockname()[1], "tls": "disable"}
        try:
            address = place | {"user": "u", "password": PASSWORD}
            return _core.MysqlConnection(json.dumps(address).encode()).parameter("server_version")
        finally:
            thread.join()
            assert not failed, failed


def proof() -> bytes:
    once = hashlib.sha256(PASSWORD.encode()).digest()
    mask = hashlib.sha256(hashlib.sha256(once).digest() + NONCE).digest()
    return bytes(a ^ b for a, b in zip(once, mask, strict=True))


def test_a_password_that_the_server_knows_is_proven_by_its_hash() -> None:
    def serve(line: Line, introduction: bytes) -> None:
        assert proof() in introduction
        line.send(b"\1\3")
        line.send(OK)

    assert connected("caching_sha2_password", serve) == "8.4.2"


def test_a_password_is_not_sent_to_a_server_that_offers_its_own_key() -> None:
    def serve(line: Line, introduction: bytes) -> None:
        line.send(b"\1\4")
        assert line.client.recv(1) == b""

    with pytest.raises(InputError, match="unencrypted") as refused:
        connected("caching_sha2_password", serve)
    assert "tls=require" in refused.value.hint


def test_a_server_may_ask_for_another_method_than_it_greeted_with() -> None:
    def serve(line: Line, introduction: bytes) -> None:
        line.send(b"\xfecaching_sha2_password\0" + NONCE + b"\0")
        assert line.take() == proof()
        line.send(b"\1\3")
        line.send(OK)

    assert connected("mysql_native_password", serve) == "8.4.2"


def test_a_method_that_is_not_known_is_named() -> None:
    with pytest.raises(InputError, match="the plug-in dialog, which ironbench does not support"):
        connected("mysql_native_password", lambda line, _: line.send(b"\xfedialog\0"))


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xff\xff\0" + b"x" * 999]
)
def test_what_another_program_answers_is_refused_with_a_hint_at_host_and_port(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            client, _ = listening.accept()
            client.sendall(answer)
            client.shutdown(socket.SHUT_WR)
            client.recv(100)
            client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        address = {"host": "127.0.0.1", "port": listening.getsockname()[1], "user": "u"}
        with pytest.raises(FailureError) as refused:
            _core.MysqlConnection(json.dumps(address).encode())
        thread.join()
    assert (
        "16 MiB or more" in str(refused.value) or "not a packet" in str(refused.value) or "closed" in str(refused.value)
    )
