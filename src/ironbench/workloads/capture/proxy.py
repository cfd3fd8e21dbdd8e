"""Makes a capture with a proxy between an application and its server.

The core forwards the bytes and observes the statements. This module stores the statements in the *partial capture*, a
DuckDB database next to the capture. At the end, it is converted to the capture. If ironbench is killed, the partial
capture remains and can be finished later. Statements that cannot be stored are counted.
"""

from __future__ import annotations

import ipaddress
import os
import resource
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import msgspec

from ironbench import engines
from ironbench.errors import FailureError, InputError, IronbenchError
from ironbench.model.note import Note, note
from ironbench.units import memory
from ironbench.words import counted, grouped
from ironbench.workloads.capture import logs, making
from ironbench.workloads.capture.file import PROXY, CaptureFacts, asked, database, is_partial

if TYPE_CHECKING:
    from ironbench._core import CapturedRows, Proxy
    from ironbench.engines.base import CaptureTraits, ProxiedServer

Show = Callable[[float, str], None]

_PARTIAL = ".partial"
_STORED_S = 2.0
"""Maximum time in seconds until a statement is stored. The time is not shorter because DuckDB syncs its file each
time."""
_POLL_INTERVAL_S = 0.25
_PROBE_S = 3.0
"""Maximum time in seconds until a server accepts a connection."""
_RESERVE = 32 << 20
"""Disk space in bytes that stays free for finishing the capture. Half of the partial capture's size stays free in
addition."""
_MEMORY = "0.5GB"
_MOST_THREADS = 4
_COUNTS = ("masked", "lost", "unfollowed")


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    listen: str
    """Address of loopback with a port, or path of a new Unix socket."""
    dsn: str
    output: str
    mask: bool = False
    seconds: float | None = None
    """Duration of the capture in seconds. If it is None, the capture ends at a signal."""
    certificate: str = ""
    """PEM file with the certificate for clients. If it is empty, clients connect without TLS. `key` is the file with
    the private key."""
    key: str = ""


def capture(options: ProxyOptions, started: Callable[[str], None], show: Show) -> CaptureFacts:
    """Runs the proxy and writes the capture. Raises InputError and FailureError. `started` is called with the address
    at which the proxy listens."""
    making.require_new(options.output)
    partial = options.output + _PARTIAL
    if Path(partial).exists():
        raise InputError(partial, "exists", f"finish this capture: ironbench capture {partial} -o FILE.capture")
    if (free := shutil.disk_usage(Path(partial).absolute().parent).free) < _RESERVE:
        cause = f"only {memory(free)} of disk space is free, but a proxy needs at least {memory(_RESERVE)}"
        raise InputError(options.output, cause, "make room, or write the capture to another file system")
    traits, server = _server(options)
    order = {
        "listen": _listen(options.listen),
        "server": server.connection,
        "tls": [options.certificate, options.key] if options.certificate else None,
        "threads": max(1, min(_MOST_THREADS, len(os.sched_getaffinity(0)) // 2)),
        "mask": options.mask,
    }
    from ironbench import _core

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # because each connection needs two descriptors
    proxy = _core.Proxy(msgspec.json.encode(order))
    store = _Store(proxy, Path(partial), options.mask, traits.protocol)
    storing = threading.Thread(target=store.run)
    failure: IronbenchError | None = None
    try:
        with _ended() as stop:
            storing.start()
            started(proxy.address)
            _wait(proxy, store, options.seconds, stop, show)
    finally:
        try:
            proxy.stop()
        except IronbenchError as error:
            failure = error
        if storing.is_alive():
            storing.join()
    if failure is None and store.failure is not None:
        cause = f"statements could not be stored: {store.failure}"
        failure = FailureError(
            options.output, cause, "the file contains the statements before this error, if it exists"
        )
    if failure is not None and not is_partial(partial):
        raise failure
    made = finish(partial, options.output, options.mask, store.counts(), store.incomplete)
    if failure is not None:
        raise failure
    return made


def _server(options: ProxyOptions) -> tuple[CaptureTraits, ProxiedServer]:
    """Returns the server, and the description of its captures."""
    word = engines.scheme(options.dsn)
    engine = engines.of_scheme(word)
    server = engine.proxied(options.dsn, bool(options.certificate), "/" in options.listen) if engine else None
    if engine is None or server is None or engine.traits.captures is None:
        cause = f"no proxy exists for {engine.name}" if engine else f"no engine supports {word}://"
        raise InputError("--to", cause, "make the capture from the server's logs")
    if bool(options.certificate) != bool(options.key):
        missing = "--tls-key" if options.certificate else "--tls-cert"
        raise InputError(missing, "is missing", "give the files of the certificate and of its key (PEM)")
    return engine.traits.captures, server


def unreachable(dsn: str) -> str:
    """Returns why the server does not accept TCP connections. Returns "" if it does, or if the DSN names a Unix
    socket."""
    engine = engines.of_scheme(engines.scheme(dsn))
    server = engine.server_of(dsn) if engine else ""
    host, _, port = server.rpartition(":")
    if "/" in server or not port.isdigit():
        return ""
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_S).close()
    except OSError as error:
        return f"{server}: {error.strerror or error}"
    return ""


def _listen(text: str) -> dict[str, str]:
    if "/" in text:
        return {"unix": str(Path(text).absolute())}
    host, _, port = text.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(host)
        if not 0 <= int(port) <= 65535:
            raise ValueError
    except ValueError:
        hint = "write for example --listen 127.0.0.1:6432, or the path of a new Unix socket"
        raise InputError(f"--listen {text}", "is not an IP address with a port", hint) from None
    return {"tcp": f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"}


@contextmanager
def _ended() -> Iterator[threading.Event]:
    """Yields an event that SIGINT and SIGTERM set. A second signal has its usual effect."""
    stop = threading.Event()
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(*_: object) -> None:
        stop.set()
        restore()

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    for number in usual:
        signal.signal(number, end)
    try:
        yield stop
    finally:
        restore()


def _wait(proxy: Proxy, store: _Store, seconds: float | None, stop: threading.Event, show: Show) -> None:
    began = time.monotonic()
    while not stop.is_set() and proxy.is_running and store.failure is None:
        passed = time.monotonic() - began
        if seconds is not None and passed >= seconds:
            return
        counters = msgspec.json.decode(proxy.counters())
        lost = counters["lost"] + store.lost
        text = f"{counted(counters['open'], 'connection')}, {counted(store.stored, 'statement')}"
        show(passed / seconds if seconds else 0.0, text + (f", {grouped(lost)} not stored" if lost else ""))
        stop.wait(min(_POLL_INTERVAL_S, seconds - passed) if seconds is not None else _POLL_INTERVAL_S)


@dataclass(slots=True)
class _Store:
    """Stores statements in a partial capture. `run` is executed in a separate thread."""

    proxy: Proxy
    path: Path
    mask: bool
    protocol: str
    stored: int = 0
    lost: int = 0
    """Number of statements that could not be stored."""
    failure: Exception | None = None
    _opened: duckdb.DuckDBPyConnection | None = None
    _closing: ExitStack = field(default_factory=ExitStack)
    """Closes the partial capture."""
    incomplete: list[int] = field(default_factory=list)
    """Transactions of which some statements could not be stored. The partial capture does not list these transactions
    yet."""

    def run(self) -> None:
        try:
            more = True
            while more:
                rows, more = self.proxy.take(_STORED_S)
                if rows is not None:
                    self._add(rows)
        except Exception as error:
            self.failure = error
        finally:
            self._closing.close()

    def _add(self, rows: CapturedRows) -> None:
        if self._has_room():
            try:
                self._insert(rows)
                self.stored += len(rows)
                self.incomplete.clear()
                return
            except (duckdb.Error, FailureError):
                # After a disk error, DuckDB may reject all statements until the file is opened again.
                with suppress(duckdb.Error):
                    self._closing.close()
                self._opened = None
        self.lost += len(rows)
        self.incomplete += self.proxy.lose(rows)

    def _has_room(self) -> bool:
        """Returns whether enough disk space remains to finish the capture."""
        size = self.path.stat().st_size if self.path.exists() else 0
        return shutil.disk_usage(self.path.parent).free >= _RESERVE + size // 2

    def _insert(self, rows: CapturedRows) -> None:
        if self._opened is None:
            self._opened = self._closing.enter_context(database(str(self.path), memory_limit=_MEMORY, threads=1))
        opened = self._opened
        opened.execute("BEGIN")
        if not _has_statements(opened):
            opened.execute("CREATE TABLE read AS SELECT * FROM rows LIMIT 0")
            opened.execute("CREATE TABLE incomplete (transaction UBIGINT)")
            opened.execute("CREATE TABLE counts (name VARCHAR, value BIGINT)")
            opened.executemany("INSERT INTO counts VALUES (?, 0)", [[name] for name in _COUNTS])
            opened.execute("CREATE TABLE source AS SELECT ? AS protocol", [self.protocol])
        opened.execute("INSERT INTO read SELECT * FROM rows")
        if self.incomplete:
            opened.executemany("INSERT INTO incomplete VALUES (?)", [[one] for one in self.incomplete])
        for name, value in self.counts().items():
            opened.execute("UPDATE counts SET value = ? WHERE name = ? AND value <> ?", [value, name, value])
        opened.execute("COMMIT")

    def counts(self) -> dict[str, int]:
        """Returns the current value of each count in `_COUNTS`."""
        counters = msgspec.json.decode(self.proxy.counters())
        lost = counters["lost"] + self.lost
        values = (int(self.mask), lost, counters["unfollowed"])
        return dict(zip(_COUNTS, values, strict=True))


def finish(
    partial: str, output: str, mask: bool = False, counts: Mapping[str, int] = {}, incomplete: Sequence[int] = ()
) -> CaptureFacts:
    """Converts a partial capture to a capture, and removes the partial capture. Raises InputError and FailureError.
    `mask`: whether the user asked for a masked capture. `counts` and `incomplete`: values that replace or extend those
    in the partial capture, because they are newer.
    """
    if not is_partial(partial):
        if lost := counts.get("lost", 0):
            cause = f"the disk is full, so no statement could be stored ({counted(lost, 'statement')} missing)"
            raise FailureError(output, cause, "make room, and start the capture again")
        raise InputError("capture", "no client sent a statement through the proxy", "let the application connect to it")
    try:
        making.require_new(output)
        made = making.made(output, lambda opened: _described(opened, partial, mask, counts, incomplete), partial)
    except InputError as error:
        if error.subject != output:
            raise
        hint = f"finish the capture with another name: ironbench capture {partial} -o FILE.capture"
        raise InputError(output, error.cause, hint) from error
    except FailureError as error:
        hint = f"make room, then finish the capture: ironbench capture {partial} -o {output}"
        raise FailureError(error.subject, error.cause, hint) from error
    # The log is removed first: without its database, DuckDB would apply it to the next partial capture of this name.
    for path in (Path(partial + ".wal"), Path(partial)):
        path.unlink(missing_ok=True)
    return made


def _described(
    opened: duckdb.DuckDBPyConnection, partial: str, mask: bool, counts: Mapping[str, int], incomplete: Sequence[int]
) -> CaptureFacts:
    if not _has_statements(opened):
        raise InputError(partial, "contains no statements", "remove the file")
    known = {**dict(asked(opened, "SELECT name, value FROM counts")), **counts}
    if mask and not known["masked"]:
        cause = "cannot be masked any more, because its values are stored already"
        raise InputError(partial, cause, "remove --mask")
    opened.execute(
        "UPDATE read SET obstacle = 'gap' WHERE transaction IN (FROM incomplete) OR list_contains(?, transaction)",
        [list(incomplete)],
    )
    opened.execute("DROP TABLE IF EXISTS broken")  # left behind by a failed attempt of an earlier version
    sources = asked(opened, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'source'")[0][0]
    protocol = asked(opened, "SELECT protocol FROM source")[0][0] if sources else ""
    facts = logs.described(opened, {"format": PROXY}, bool(known["masked"]), protocol)
    return msgspec.structs.replace(facts, notes=(*facts.notes, *_notes(known, facts.statements)))


def _has_statements(opened: duckdb.DuckDBPyConnection) -> bool:
    return bool(asked(opened, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'counts'")[0][0])


def _notes(known: Mapping[str, int], statements: int) -> Iterator[Note]:
    if known["lost"]:
        yield note("capture-lost", statements=known["lost"], share=known["lost"] / (known["lost"] + statements))
    if known["unfollowed"]:
        yield note("capture-unfollowed", connections=known["unfollowed"])
