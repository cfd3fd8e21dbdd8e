"""A proxy that terminates TLS for a server without TLS, such as the wheel's PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from pathlib import Path
from types import TracebackType

CERTIFICATES = Path(__file__).parent.parent / "data" / "tls"
_SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")


class TlsProxy:
    """Listens on 127.0.0.1:`port`, answers SSLRequest with `S`, and forwards everything to `backend` (a socket path).

    `handshakes` counts the completed TLS handshakes.
    """

    def __init__(
        self,
        backend: str,
        certificate: str = "server",
        newest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
        clients: str = "",
        direct: bool = False,
    ) -> None:
        """`clients`: certificate that a client must show; `direct`: TLS starts with the first byte."""
        self.backend = backend
        self.port = 0
        self.handshakes = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.maximum_version = newest
        self._context.load_cert_chain(CERTIFICATES / f"{certificate}.crt", CERTIFICATES / f"{certificate}.key")
        self._direct = direct
        if clients:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(CERTIFICATES / f"{clients}.crt")
        if direct:
            self._context.set_alpn_protocols(["postgresql"])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> TlsProxy:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context if self._direct else None), self._loop
        ).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readexactly(len(_SSL_REQUEST))
            if self._direct:
                self.handshakes += 1
            elif head == _SSL_REQUEST:
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(self._context)
                self.handshakes += 1
                head = b""
            behind_reader, behind_writer = await asyncio.open_unix_connection(self.backend)
            behind_writer.write(head)
            await asyncio.gather(_pump(reader, behind_writer), _pump(behind_reader, writer))
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
