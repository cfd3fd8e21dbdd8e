"""Limits on connections, so that a client with many idle connections cannot lock others out.

A client must send a complete request header within `PATIENCE_S` after the connection was accepted, and again after each
response. If the maximum number of connections is open and a new client connects, the server closes the connection that
has been idle for the longest time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
"""Maximum number of open connections. A browser opens six connections to each host."""
PATIENCE_S = 10.0
"""Seconds within which a client must send its next request header."""
_MOST_ENDING = 8
"""Maximum number of connections that are shut down but not yet closed. Such a connection still uses a file descriptor,
so no new connection is accepted if there are more."""
_QUIET_S = 60.0
"""Seconds for which repetitions of a message are suppressed on the terminal."""


class Listener(socket.socket):
    """A listening socket that keeps at most `most` connections open, and closes connections on which no request
    arrives."""

    def __init__(self, family: int, most: int | None = None, patience_s: float = PATIENCE_S) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.most = most_connections() if most is None else most
        self._patience_s = patience_s
        self._open: dict[int, _Accepted] = {}
        """Open connections by file descriptor."""
        self._ending: set[int] = set()
        """File descriptors of connections that this process has shut down but that are not closed yet."""
        self._waiting: dict[int, asyncio.TimerHandle] = {}
        """Timers of idle connections by file descriptor, the longest idle connection first."""

    def accept(self) -> tuple[socket.socket, Any]:
        """Accepts a connection. If the maximum number of connections is open, shuts down the connection that has been
        idle for the longest time.

        Raises BlockingIOError if too many shut-down connections are not yet closed, and ConnectionAbortedError if no
        connection is idle. asyncio treats both as "nothing to accept" (selector_events.py, `_accept_connection`).
        """
        if len(self._ending) >= _MOST_ENDING:
            raise BlockingIOError
        descriptor, address = self._accept()  # type: ignore[attr-defined]
        one = _Accepted(self.family, self.type, self.proto, descriptor, self._forget)
        if len(self._open) - len(self._ending) >= self.most:
            if not self._waiting:
                one.close()
                raise ConnectionAbortedError
            self._end(next(iter(self._waiting)))
        self._open[descriptor] = one
        self.wait_for_request(descriptor)
        return one, address

    def wait_for_request(self, descriptor: int) -> None:
        """Starts the timer for a connection's next request header."""
        self.request_came(descriptor)
        if descriptor in self._open:
            loop = asyncio.get_running_loop()
            self._waiting[descriptor] = loop.call_later(self._patience_s, self._end, descriptor)

    def request_came(self, descriptor: int) -> None:
        if timer := self._waiting.pop(descriptor, None):
            timer.cancel()

    def _end(self, descriptor: int) -> None:
        """Shuts a connection down. The connection's asyncio transport then reads the end of the stream and closes the
        connection."""
        self.request_came(descriptor)
        if one := self._open.get(descriptor):
            self._ending.add(descriptor)
            with contextlib.suppress(OSError):  # fails if the peer has closed the connection
                one.shutdown(socket.SHUT_RDWR)

    def _forget(self, descriptor: int) -> None:
        self.request_came(descriptor)
        self._ending.discard(descriptor)
        self._open.pop(descriptor, None)


class _Accepted(socket.socket):
    """An accepted connection that calls a function when it is closed."""

    def __init__(self, family: int, kind: int, protocol: int, descriptor: int, closed: Callable[[int], None]) -> None:
        super().__init__(family, kind, protocol, fileno=descriptor)
        self._descriptor, self._said = descriptor, closed

    def close(self) -> None:
        if self.fileno() != -1:
            self._said(self._descriptor)
        super().close()


def protocol(listener: Listener) -> type[H11Protocol]:
    """Returns an HTTP protocol that reports idle connections to the listener."""

    class WatchedConnection(H11Protocol):
        descriptor = -1

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.descriptor = transport.get_extra_info("socket").fileno()

        def handle_events(self) -> None:
            before = self.cycle
            super().handle_events()
            if self.cycle is not before:
                listener.request_came(self.descriptor)

        def on_response_complete(self) -> None:
            # The timer must start first. The call below may already process the next request, which stops the timer.
            listener.wait_for_request(self.descriptor)
            super().on_response_complete()

    return WatchedConnection


def most_connections() -> int:
    """Returns the maximum number of open connections. This is `MOST`, but at most half of the file descriptors that the
    process may have. The other half is for records and pages. First raises the soft limit on file descriptors to the
    hard limit (getrlimit(2))."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return MOST if soft == resource.RLIM_INFINITY else max(8, min(MOST, soft // 2))


class QuietHandler(logging.Handler):
    """A log handler that prints each message as one line, and prints the same line at most once a minute, so that
    invalid requests cannot flood a terminal or a log file."""

    def __init__(self, say: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._say, self._now = say, now
        self._said: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        words = record.getMessage().split("\n", 1)[0][:200]
        now = self._now()
        self._said = {text: at for text, at in self._said.items() if now - at < _QUIET_S}
        if words not in self._said and len(self._said) < 100:
            self._said[words] = now
            self._say(words)
