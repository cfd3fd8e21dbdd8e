"""A machine with so many processes that an answer is longer than a window of ssh."""

from __future__ import annotations

import time
from typing import Any, cast

import asyncssh

from ironbench.model.observation import Source
from ironbench.remote import link
from ironbench.remote.link import Link
from ironbench.remote.watch import Watch

_LINE = b"/proc/stat:cpu " + b"7 " * 500 + b"\n"
_LINES = 3000


class _Open(asyncssh.SSHServer):
    """Lets everybody in."""

    def begin_auth(self, username: str) -> bool:
        return False


async def _shell(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.stdout.write(b"watching 1 2\n")
    async for _ in process.stdin:
        process.stdout.write(b"frame 5.00\n" + _LINE * _LINES + b"\nuntil 5.01\nend\n")
    process.exit(0)


class _Machine:
    """A link to an ssh server in this process, in the thread of links."""

    def __init__(self) -> None:
        self.sessions = 0
        self._acceptor, self._connection = link.waited(self._connected())

    async def _connected(self) -> tuple[Any, Any]:
        key = asyncssh.generate_private_key("ssh-ed25519")
        acceptor = await asyncssh.listen(
            "127.0.0.1", 0, server_factory=_Open, server_host_keys=[key], process_factory=_shell, encoding=None
        )
        port = acceptor.get_port()
        connection = await asyncssh.connect(
            "127.0.0.1", port, username="bench", known_hosts=None, client_keys=None, agent_path=None, config=None
        )
        return acceptor, connection

    async def process(self, command: str) -> Any:
        self.sessions += 1
        return await self._connection.create_process(command, encoding=None)

    async def close(self) -> None:
        self._connection.close()
        self._acceptor.close()


def test_an_answer_longer_than_a_window_of_ssh_is_no_lost_link() -> None:
    assert len(_LINE) * _LINES > 2 << 20
    machine = _Machine()
    try:
        watch = Watch(cast(Link, machine), (Source("cpu.stat", "file", "/proc/stat"),))
        start_s = time.monotonic()
        watch.begin()
        limit_s = start_s + 20.0
        while not (watch._frames or machine.sessions > 1) and time.monotonic() < limit_s:
            time.sleep(0.02)
        seen = watch.end(start_s)
        assert seen.samples["cpu.stat"] and not seen.lost
        assert machine.sessions == 1
        _, first = seen.samples["cpu.stat"][0]
        assert first.count(b"\n") == _LINES
    finally:
        link.waited(machine.close())
