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
from ironbench.serve.door import Door
from ironbench.serve.page import load
from ironbench.serve.shelf import Shelf

_PATIENCE_S = 2
"""How long open pages may keep the end waiting."""
_READING_S = 5
"""How long the address waits for records to be read: so a first page comes as fast as the next."""


def run(results: Path, door: Door, printer: Printer) -> int:
    """InputError: the address is taken, or nothing can be written to the results."""
    Store(results, printer).validate()
    load()
    with _listening(door) as listener:
        door = replace(door, port=listener.getsockname()[1])
        shelf = Shelf(results)
        reading = threading.Thread(target=shelf.holdings, name="reading", daemon=True)
        reading.start()
        config = uvicorn.Config(
            application(shelf, door, printer),
            log_config=None,
            http=connections.protocol(listener),
            access_log=False,
            server_header=False,
            date_header=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=_PATIENCE_S,
            ssl_certfile=door.certificate or None,
            ssl_keyfile=door.key or None,
        )
        _keep_quiet(printer)
        try:
            config.load()
        except OSError as error:  # ssl.SSLError is one
            raise InputError(
                "--tls-certificate", f"cannot be used: {error.strerror or error}", "name PEM files"
            ) from None
        reading.join(_READING_S)
        if reading.is_alive():
            printer.say("many records are read for the first time; pages and the queue wait for it")
        printer.data(door.url())
        printer.say("open this address in a browser; Ctrl-C ends the server, and nothing that it has begun")
        with contextlib.suppress(KeyboardInterrupt):  # the way to end it
            _Server(config).run(sockets=[listener])
    return 0


class _Server(uvicorn.Server):
    """Sleeps until a signal ends it. Uvicorn's own (0.54) asks ten times a second whether one has come, which took 3 ms
    of each second from what is measured on the same machine (`python -m bench serve_cost`)."""

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


def _listening(door: Door) -> connections.Listener:
    listener = connections.Listener(socket.AF_INET6 if ":" in door.address else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((door.address, door.port))
        listener.listen(128)  # whoever opens the printed address at once waits, and is not refused
    except OSError as error:
        listener.close()
        hint = "name another port, or 0 for a free one"
        if error.errno == errno.EADDRNOTAVAIL:
            hint = "name an address of this machine"
        raise InputError(f"--listen {door.address}:{door.port}", f"cannot be used: {error.strerror}", hint) from None
    return listener
