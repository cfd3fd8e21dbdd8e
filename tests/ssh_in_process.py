"""An ssh server in this process, in the thread of links, with answers written by tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import asyncssh

from ironbench.host.remote import link
from ironbench.host.remote.address import SshAddress
from ironbench.host.remote.link import Link

Shell = Callable[[Any], Awaitable[None]]


class _Open(asyncssh.SSHServer):
    """Lets everyone in."""

    def begin_auth(self, username: str) -> bool:
        return False


class SshInProcess(Link):
    """The link to the server. `sessions`: number of sessions so far."""

    def __init__(self, shell: Shell) -> None:
        super().__init__(SshAddress("127.0.0.1"))
        self.sessions = 0
        self._shell = shell
        self._acceptor: Any = None
        link.waited(self._begin())

    async def _begin(self) -> None:
        key = asyncssh.generate_private_key("ssh-ed25519")
        self._acceptor = await asyncssh.listen(
            "127.0.0.1", 0, server_factory=_Open, server_host_keys=[key], process_factory=self._served, encoding=None
        )
        port = self._acceptor.get_port()
        self._connection = await asyncssh.connect(
            "127.0.0.1", port, username="bench", known_hosts=None, client_keys=None, agent_path=None, config=None
        )

    async def _served(self, process: Any) -> None:
        self.sessions += 1
        await self._shell(process)

    def close(self) -> None:
        super().close()
        link.loop().call_soon_threadsafe(self._acceptor.close)
