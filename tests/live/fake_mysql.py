"""A server that logs in clients as MySQL does if it does not have the password's digest in its cache."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from types import TracebackType

from raw_mysql import CERTIFICATES

_LONG_PASSWORD, _PROTOCOL_41, _SSL, _SECURE, _PLUGIN_AUTH, _DEPRECATE_EOF = (
    1,
    1 << 9,
    1 << 11,
    1 << 15,
    1 << 19,
    1 << 24,
)
_OFFERED = _LONG_PASSWORD | 8 | _PROTOCOL_41 | _SSL | _SECURE | _PLUGIN_AUTH | _DEPRECATE_EOF
_OK = bytes([0, 0, 0, 2, 0, 0, 0])
_TIMEOUT_S = 10.0
"""Maximum time in seconds to wait for a packet of a client."""


class FakeMysql:
    """Listens on 127.0.0.1:`port`. Clients must use TLS, and send their password inside it. Every command succeeds."""

    def __init__(self) -> None:
        self.passwords: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> FakeMysql:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            # `capture` first connects only to see whether the server accepts connections.
            with client, contextlib.suppress(ConnectionError):
                client.settimeout(_TIMEOUT_S)
                self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        low, high = (_OFFERED & 0xFFFF).to_bytes(2, "little"), (_OFFERED >> 16).to_bytes(2, "little")
        greeting = b"\x0a8.4.0\0\x07\0\0\0abcdefgh\0" + low + b"\x2d\x02\0" + high + b"\x15" + bytes(10)
        _send(client, 0, greeting + b"ijklmnopqrst\0caching_sha2_password\0")
        number, request = _receive(client)
        if not request:
            return
        assert (number, len(request)) == (1, 32)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.crt", CERTIFICATES / "server.key")
        with context.wrap_socket(client, server_side=True) as secure:
            number, response = _receive(secure)
            assert number == 2 and b"caching_sha2_password" in response
            _send(secure, 3, b"\x01\x04")
            number, password = _receive(secure)
            assert number == 4
            self.passwords.append(password)
            _send(secure, 5, _OK)
            while (command := _receive(secure)[1]) and command[:1] != b"\x01":
                _send(secure, 1, _OK)


def _send(to: socket.socket, number: int, body: bytes) -> None:
    to.sendall(len(body).to_bytes(3, "little") + bytes([number]) + body)


def _receive(of: socket.socket) -> tuple[int, bytes]:
    """Returns the number and the body of a packet. The body is empty at the end of the connection."""
    head = _exactly(of, 4)
    return (head[3], _exactly(of, int.from_bytes(head[:3], "little"))) if head else (0, b"")


def _exactly(of: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = of.recv(count - len(found))
        if not piece:
            return b""
        found += piece
    return found
