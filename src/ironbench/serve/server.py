"""Runs the application on its address until it is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import threading
from dataclasses import replace
from pathlib import Path
from types import FrameType

import uvicorn

from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.serve import connections
from ironbench.serve.app import application
from ironbench.serve.auth import AccessPolicy
from ironbench.serve.page import load
from ironbench.serve.results import Results

_PATIENCE_S = 2
"""Seconds for which open pages may delay the shutdown."""
_READING_S = 5
"""Maximum number of seconds that the start of the server waits for the index of records. If the index is complete, the
first page is as fast as later pages."""


def run(directory: Path, policy: AccessPolicy, printer: Printer) -> int:
    """Runs the server until it is interrupted. Raises InputError if the address is in use, or if the results cannot be
    written."""
    Store(directory, printer).validate()
    load()
    with _listening(policy) as listener:
        policy = replace(policy, port=listener.getsockname()[1])
        results = Results(directory)
        reading = threading.Thread(target=results.index, name="reading", daemon=True)
        reading.start()
        config = uvicorn.Config(
            application(results, policy, printer),
            log_config=None,
            http=connections.protocol(listener),
            access_log=False,
            server_header=False,
            date_header=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=_PATIENCE_S,
            ssl_certfile=policy.certificate or None,
            ssl_keyfile=policy.key or None,
        )
        _keep_quiet(printer)
        try:
            config.load()
        except OSError as error:  # includes ssl.SSLError
            raise InputError(
                "--tls-certificate",
                f"cannot be used: {error.strerror or error}",
                "set both options to paths of PEM files",
            ) from None
        reading.join(_READING_S)
        if reading.is_alive():
            printer.say("indexing many records for the first time; pages and the queue wait until this is finished")
        printer.data(policy.url())
        printer.say("open this address in a browser; Ctrl-C stops the server, but not the labs that it started")
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C stops the server and is no error
            _Server(config).run(sockets=[listener])
    return 0


class _Server(uvicorn.Server):
    """A server that sleeps until a signal ends it. The main loop of Uvicorn 0.54 wakes up ten times a second, which
    took 3 ms of CPU time per second from trials on the same machine (`python -m bench serve_cost`)."""

    _ended: asyncio.Event | None = None

    async def main_loop(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        await self.on_tick(0)
        if not self.should_exit:
            await self._ended.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)


def _keep_quiet(printer: Printer) -> None:
    handler = connections.QuietHandler(printer.say)
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate, logger.level = [handler], False, logging.WARNING


def _listening(policy: AccessPolicy) -> connections.Listener:
    listener = connections.Listener(socket.AF_INET6 if ":" in policy.address else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((policy.address, policy.port))
        listener.listen(128)  # early connections wait and are not refused
    except OSError as error:
        listener.close()
        hint = "choose another port, or 0 for any free port"
        if error.errno == errno.EADDRNOTAVAIL:
            hint = "choose an address of this machine"
        raise InputError(
            f"--listen {policy.address}:{policy.port}", f"cannot be used: {error.strerror}", hint
        ) from None
    return listener
