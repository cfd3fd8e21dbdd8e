"""A proxy between clients and a PostgreSQL server that records every client message."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType

Message = tuple[bytes, bytes]
"""Tag and body."""


class RecordingProxy:
    """Listens on the Unix socket for `port` in `host`, a new directory. Use as a context manager."""

    def __init__(self, server_socket: str, port: int) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="ironbench-test-", dir="/tmp")
        self.host, self.port = self._directory.name, port
        self._server_socket = server_socket
        self._streams: list[bytearray] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> RecordingProxy:
        self._listener.bind(str(Path(self.host) / f".s.PGSQL.{self.port}"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self._directory.cleanup()

    def sent(self) -> list[list[Message]]:
        """Returns the messages of each connection that sent any after startup, once all connections have ended. Resets
        the record."""
        for thread in self._threads:
            thread.join(timeout=20)
        streams, self._streams, self._threads = self._streams, [], []
        return [messages for stream in streams if (messages := _messages(bytes(stream)))]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server_socket)
                stream = bytearray()
                self._streams.append(stream)
                for source, sink, kept in ((client, server, stream), (server, client, None)):
                    thread = threading.Thread(target=_pump, args=(source, sink, kept), daemon=True)
                    self._threads.append(thread)
                    thread.start()


def _pump(source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if kept is not None:
                kept += data
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _messages(stream: bytes) -> list[Message]:
    """Splits a stream into messages, without Startup (the only message without a tag) and Terminate."""
    rest, found = stream[int.from_bytes(stream[:4], "big") :], []
    while rest:
        length = int.from_bytes(rest[1:5], "big")
        found.append((rest[:1], rest[5 : 1 + length]))
        rest = rest[1 + length :]
    return [message for message in found if message[0] != b"X"]
