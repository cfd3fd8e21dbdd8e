"""The server side of connections that misbehave: without a real server, or as a proxy between client and real
server."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.hostile.messages import Ldap, Mysql, Postgres

CERTIFICATES = Path(__file__).parents[2] / "tests" / "data" / "tls"
POSTGRES, MYSQL, LDAP = "postgres", "mysql", "ldap"
PROTOCOLS = (POSTGRES, MYSQL, LDAP)
MARKER = b"SELECT 'hostile'"
"""Start of a query that identifies connections of the drive loop, as opposed to connections for ironbench's own
queries."""
_SSL_REQUEST = 80_877_103
_CANCEL_REQUEST = 80_877_102
_HEAD = 5
"""Number of bytes before the text of a query, in both protocols."""
_PATIENCE_S = 300.0


class GoneError(Exception):
    """The client has closed the connection."""


class Peer:
    """A connection, as seen by the server."""

    def __init__(self, protocol: str, client: socket.socket, received: bytearray) -> None:
        self.protocol = protocol
        self.client = client
        self.received = received
        """Everything that clients have sent over all connections, as readable on the network."""
        self.sequence = 0
        """MySQL: sequence number of the next packet."""
        self.identity = 0
        """LDAP: message number of the client's last request."""
        self.ended = threading.Event()

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.client.recv(count - len(data))
            if not piece:
                raise GoneError
            if not isinstance(self.client, ssl.SSLSocket):
                self.received += piece
            data += piece
        return data

    def take(self) -> bytes:
        """Returns the client's next message: for PostgreSQL and MySQL without header, for LDAP the operation."""
        if self.protocol == POSTGRES:
            tag = self.exactly(1)
            return tag + self.exactly(int.from_bytes(self.exactly(4), "big") - 4)
        if self.protocol == MYSQL:
            head = self.exactly(4)
            self.sequence = (head[3] + 1) % 256
            return self.exactly(int.from_bytes(head[:3], "little"))
        head = self.exactly(2)
        length = head[1]
        if length & 0x80:
            length = int.from_bytes(self.exactly(length & 0x7F), "big")
        body = self.exactly(length)
        self.identity = int.from_bytes(body[2 : 2 + body[1]], "big", signed=True)
        return body[2 + body[1] :]

    def raw(self, data: bytes) -> None:
        try:
            self.client.sendall(data)
        except OSError:
            raise GoneError from None

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Sends everything inside the block as one piece."""
        pieces: list[bytes] = []
        self.raw = pieces.append  # type: ignore[method-assign]
        try:
            yield
        finally:
            del self.raw
        self.raw(b"".join(pieces))

    def send(self, *bodies: bytes) -> None:
        """Sends messages of PostgreSQL, bodies of MySQL packets, or LDAP operations."""
        for body in bodies:
            if self.protocol == MYSQL:
                self.raw(len(body).to_bytes(3, "little") + bytes([self.sequence]) + body)
                self.sequence = (self.sequence + 1) % 256
            elif self.protocol == LDAP:
                self.raw(Ldap.message(self.identity, body))
            else:
                self.raw(body)

    def introduction(self, tls: bytes = b"N", greeting: bytes | None = None, starts_tls: bool = False) -> bytes:
        """Runs the protocol up to the client's first login message, and returns it.

        `tls`: answer to PostgreSQL's SSLRequest. `starts_tls`: agree to StartTLS; the caller does the handshake.
        """
        if self.protocol == POSTGRES:
            while True:
                body = self.exactly(int.from_bytes(self.exactly(4), "big") - 4)
                code = int.from_bytes(body[:4], "big")
                if code == _SSL_REQUEST:
                    self.raw(tls)
                    if tls != b"N":
                        return body
                    continue
                if code == _CANCEL_REQUEST:
                    raise GoneError
                return body
        if self.protocol == MYSQL:
            self.send(Mysql.greeting() if greeting is None else greeting)
            return self.take()
        request = self.take()
        while request[0] == 0x77:  # StartTLS
            self.send(Ldap.result(Ldap.EXTENDED, 0 if starts_tls else 2))
            if starts_tls:
                return request
            request = self.take()
        return request

    def let_in(self) -> None:
        """Accepts the client's login without checking it."""
        self.introduction()
        if self.protocol == POSTGRES:
            self.send(Postgres.let_in())
        elif self.protocol == MYSQL:
            self.send(Mysql.ok())
        else:
            self.send(Ldap.result(Ldap.BOUND))

    def asked(self) -> Iterator[bytes]:
        """Accepts the login and yields the client's requests. Requests that need only a formal answer are answered
        here."""
        self.let_in()
        while True:
            request = self.take()
            if self.protocol == MYSQL and request[:1] == b"\x01":
                raise GoneError
            if self.protocol == MYSQL and request[1:4].lower() == b"set":
                self.send(Mysql.ok())
            elif self.protocol == LDAP and request[0] == 0x60:
                self.send(Ldap.result(Ldap.BOUND))
            elif (self.protocol == POSTGRES and request[:1] == b"X") or (self.protocol == LDAP and request[0] == 0x42):
                raise GoneError
            else:
                yield request

    def error(self, text: bytes) -> None:
        if self.protocol == POSTGRES:
            self.send(Postgres.error(text), Postgres.ready())
        elif self.protocol == MYSQL:
            self.send(Mysql.error(text))
        else:
            self.send(Ldap.result(Ldap.DONE, 80, text))

    def secured(self, certificate: str = "self_signed") -> None:
        """Continues in TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / f"{certificate}.crt", CERTIFICATES / f"{certificate}.key")
        try:
            self.client = context.wrap_socket(self.client, server_side=True)
        except OSError:
            raise GoneError from None

    def wait(self) -> None:
        """Sends nothing more until the client or the trial has ended."""
        while not self.ended.wait(0.1):
            if self.client.recv(1 << 16, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b"":
                raise GoneError
            self.ended.wait(0.4)

    def silence(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.wait()
        self.ended.wait(_PATIENCE_S)

    def reset(self) -> None:
        """Closes the connection with RST."""
        with contextlib.suppress(OSError):
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.client.shutdown(socket.SHUT_RD)  # wakes up a thread that reads
        self.client.close()
        raise GoneError

    def endless(self, data: bytes) -> None:
        many = data * max(1, (1 << 20) // len(data))
        while not self.ended.is_set():
            self.raw(many)
        raise GoneError


Act = Callable[[Peer], None]


@dataclass
class Listener:
    """Address of the hostile server, and what it received."""

    port: int
    received: bytearray = field(default_factory=bytearray)
    faults: list[BaseException] = field(default_factory=list)
    """Exceptions in the hostile server itself."""


@contextmanager
def hostile(protocol: str, act: Act) -> Iterator[Listener]:
    """Runs a server that calls `act` for each connection. It listens on all addresses of this machine."""
    with _listening(lambda client, listener: Peer(protocol, client, listener.received), act) as listener:
        yield listener


@contextmanager
def _listening(made: Callable[[socket.socket, Listener], Peer], act: Act) -> Iterator[Listener]:
    ended = threading.Event()
    threads: list[threading.Thread] = []
    with socket.create_server(("0.0.0.0", 0), backlog=128) as listening:
        listener = Listener(listening.getsockname()[1])

        def serve(client: socket.socket) -> None:
            peer = made(client, listener)
            peer.ended = ended
            try:
                act(peer)
            except (GoneError, OSError):
                pass
            except BaseException as error:
                listener.faults.append(error)
            finally:
                with contextlib.suppress(OSError):
                    peer.client.close()

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    thread = threading.Thread(target=serve, args=(client,), daemon=True)
                    threads.append(thread)
                    thread.start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield listener
        finally:
            ended.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            # `threads` is complete, and each of them started, only when no more connections are accepted.
            accepting.join(2.0)
    for thread in threads:
        thread.join(2.0)


Message = Callable[["Between", bytes], None]
"""Handles a complete message of the real server on a connection of the drive loop."""


class Between(Peer):
    """A connection to a client with a real server behind it, whose messages are passed on or changed."""

    def __init__(
        self, protocol: str, client: socket.socket, received: bytearray, server: socket.socket, secret: str
    ) -> None:
        super().__init__(protocol, client, received)
        self.server = server
        self.secret = secret.encode()
        """The client's password."""
        self.marked = False
        """Whether the connection belongs to the drive loop: it has sent [`MARKER`]."""
        self.messages = 0
        """Number of server messages since the client sent the marker."""
        self.kept: dict[str, Any] = {}
        """Storage for a behaviour."""

    def carry(self, change: Message) -> None:
        forth = threading.Thread(target=self._forth, daemon=True)
        forth.start()
        try:
            self._back(change)
        finally:
            with contextlib.suppress(OSError):
                self.server.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                self.client.shutdown(socket.SHUT_RDWR)
            forth.join(2.0)
            self.server.close()

    def _forth(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.client.recv(1 << 16):
                self.received += data
                self.marked = self.marked or self._is_driven(data)
                self.server.sendall(data)
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)

    def _is_driven(self, data: bytes) -> bool:
        if self.protocol == LDAP:
            # Connections for ironbench's own queries start with another request.
            if _is_search(data):
                return bool(self.kept.setdefault("driven", b"\x04\x03uid" in data))
            return False
        return data[_HEAD:].startswith(MARKER)

    def _back(self, change: Message) -> None:
        buffer = bytearray()
        while data := self.server.recv(1 << 16):
            buffer += data
            while (size := self.size(buffer)) is not None and size <= len(buffer):
                message = bytes(buffer[:size])
                del buffer[:size]
                if self.marked:
                    self.messages += 1
                    change(self, message)
                else:
                    self.raw(message)

    def size(self, data: bytearray) -> int | None:
        if self.protocol == POSTGRES:
            if data[:1] == b"N" and not self.kept.get("begun"):
                return 1
            self.kept["begun"] = True
            return None if len(data) < 5 else 1 + int.from_bytes(data[1:5], "big")
        if self.protocol == MYSQL:
            return None if len(data) < 4 else 4 + int.from_bytes(data[:3], "little")
        if len(data) < 2:
            return None
        if data[1] < 0x80:
            return 2 + data[1]
        count = data[1] & 0x7F
        return None if len(data) < 2 + count else 2 + count + int.from_bytes(data[2 : 2 + count], "big")


def _is_search(data: bytes) -> bool:
    head = 2 + (data[1] & 0x7F if data[1] & 0x80 else 0)
    return data[head + 2 + data[head + 1]] == 0x63


@contextmanager
def between(protocol: str, connect: Callable[[], socket.socket], change: Message, secret: str) -> Iterator[Listener]:
    """Runs a proxy on all addresses of this machine. It passes everything between client and real server, except for
    messages that `change` replaces."""

    def made(client: socket.socket, listener: Listener) -> Peer:
        return Between(protocol, client, listener.received, connect(), secret)

    def act(peer: Peer) -> None:
        assert isinstance(peer, Between)
        peer.carry(change)

    with _listening(made, act) as listener:
        yield listener
