"""Silent connections are limited in number and time, and messages about them in lines."""

from __future__ import annotations

import asyncio
import http.client
import logging
import os
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from served import TOKEN

from ironbench.serve.connections import Listener, QuietHandler, most_connections

FILES = 256
IDLE = 400


@asynccontextmanager
async def echoing(listener: Listener) -> AsyncIterator[int]:
    """A server that echoes each line; only the listener is under test."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        descriptor = writer.get_extra_info("socket").fileno()
        while line := await reader.readline():
            listener.request_came(descriptor)
            writer.write(line)
            listener.wait_for_request(descriptor)
        writer.close()

    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    listener.setblocking(False)
    server = await asyncio.start_server(answer, sock=listener)
    try:
        yield listener.getsockname()[1]
    finally:
        server.close()


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(0.01)
    return reader, writer


def test_a_connection_without_a_request_is_closed_after_its_deadline() -> None:
    async def scene() -> None:
        async with echoing(Listener(socket.AF_INET, 8, 0.2)) as port:
            silent, _ = await connected(port)
            assert await asyncio.wait_for(silent.read(), 5) == b""

    asyncio.run(scene())


def test_a_connection_that_sends_requests_stays_beyond_the_deadline_of_each() -> None:
    async def scene() -> None:
        async with echoing(Listener(socket.AF_INET, 8, 0.5)) as port:
            reader, writer = await connected(port)
            for _ in range(6):
                writer.write(b"hello\n")
                assert await asyncio.wait_for(reader.readline(), 5) == b"hello\n"
                await asyncio.sleep(0.15)

    asyncio.run(scene())


def test_at_the_limit_the_longest_waiting_connection_makes_room() -> None:
    async def scene() -> None:
        async with echoing(Listener(socket.AF_INET, 3, 60)) as port:
            lines = [await connected(port) for _ in range(4)]
            assert await asyncio.wait_for(lines[0][0].read(), 5) == b""
            for reader, writer in lines[1:]:
                writer.write(b"here\n")
                assert await asyncio.wait_for(reader.readline(), 5) == b"here\n"

    asyncio.run(scene())


def test_at_most_half_of_the_files_of_a_process_are_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    for hard, most in ((256, 128), (10, 8), (1 << 20, 256)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, hard=hard: (hard, hard))
        assert most_connections() == most


def test_the_same_message_is_said_once_a_minute_in_one_line() -> None:
    said: list[str] = []
    clock = [0.0]
    handler = QuietHandler(said.append, lambda: clock[0])
    record = logging.LogRecord("asyncio", logging.ERROR, "", 0, "out of files\nTraceback", (), None)
    for clock[0] in (0.0, 1.0, 59.0, 61.0):
        handler.handle(record)
    assert said == ["out of files", "out of files"]


def test_four_hundred_idle_connections_do_not_keep_a_page_waiting(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ironbench.start", "serve", "--listen", "127.0.0.1:0", "--results", str(tmp_path)]
    environment = {**os.environ, "IRONBENCH_TOKEN": TOKEN, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    limited = ["prlimit", f"--nofile={FILES}:{FILES}", *words]
    with (tmp_path / "errors").open("wb") as errors:
        process = subprocess.Popen(limited, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        idle: list[socket.socket] = []
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().split("?")[0].rstrip("/").rpartition(":")[2])
            for _ in range(IDLE):
                one = socket.socket()
                one.settimeout(60)
                one.connect(("127.0.0.1", port))
                idle.append(one)
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
            line.request("GET", "/queue", headers={"authorization": f"Bearer {TOKEN}"})
            assert line.getresponse().status == 200
        finally:
            for one in idle:
                one.close()
            process.terminate()
            process.wait(20)
            assert process.stdout is not None
            process.stdout.close()
    assert (tmp_path / "errors").stat().st_size < 2000
