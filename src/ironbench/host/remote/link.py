"""An ssh connection to a remote machine, usable from any thread.

asyncssh runs in a separate thread, which is called the thread of connections. The CPU time of this thread counts as
observer time.

Keys, agent, jump hosts and known hosts are taken from the files in `~/.ssh`. Unknown host keys are refused. The user is
never asked for a password.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ironbench.errors import FailureError, InputError, IronbenchError, shortened, written
from ironbench.host.remote.address import FIELD, SshAddress

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection, SSHClientProcess

T = TypeVar("T")
CONNECT_S = 10.0
"""Timeout for the connection and for authentication."""
_ALIVE_S = 3.0
_ALIVE_MISSED = 4
"""Number of unanswered messages after which a machine counts as lost, which takes 12 s. TCP would wait for a quarter of
an hour (tcp(7))."""

_BEGUN = b"ironbench-begins\n"
_BEGIN = f"echo {_BEGUN.decode().strip()}; "
"""Shell command that prints a marker and runs before the actual command. Text before the marker is ignored, because it
comes from the user's start-up files, such as ~/.bashrc."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a remote command."""

    status: int | None
    """Exit status, or None if the command was killed by a signal."""
    output: bytes
    complaint: str
    """The last lines of standard error."""


class Link:
    """A connection to one machine. Connects at first use, and again if the connection was lost."""

    def __init__(self, address: SshAddress) -> None:
        self.address = address
        self._connection: SSHClientConnection | None = None
        self._opening: asyncio.Lock | None = None

    def run(self, command: str, stdin: bytes = b"", limit_s: float = 30.0) -> CommandResult:
        """Runs a command in the user's shell. Raises InputError if access is denied, and FailureError if no answer
        arrives in time."""
        return waited(self._run(command, stdin, limit_s))

    def connect(self) -> None:
        """Connects without running a command. Raises the same errors as `run`."""
        waited(self.connection())

    async def connection(self) -> SSHClientConnection:
        """Returns the open connection. Must be called in the thread of connections."""
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._connection is None or self._connection.is_closed():
                self._connection = await _connected(self.address)
            return self._connection

    async def process(self, command: str) -> SSHClientProcess[bytes]:
        """Starts a command and does not wait for it. Must be called in the thread of connections."""
        return await (await self.connection()).create_process(command, encoding=None)

    def close(self) -> None:
        if self._connection is not None:
            waited(self._close())

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            with contextlib.suppress(asyncio.TimeoutError, OSError):
                await asyncio.wait_for(connection.wait_closed(), 2.0)

    async def _run(self, command: str, stdin: bytes, limit_s: float) -> CommandResult:
        import asyncssh

        subject = f"{self.address.text()}"
        connection = await self.connection()
        try:
            done = await asyncio.wait_for(
                connection.run(f"exec sh -c {quoted(_BEGIN + command)}", input=stdin, encoding=None), limit_s
            )
        except TimeoutError:
            raise FailureError(subject, f"`{shortened(command, 60)}` did not end within {limit_s:g} s") from None
        except (asyncssh.Error, OSError) as error:
            connection.abort()
            raise FailureError(subject, f"the connection was lost: {_words(error)}") from None
        complaint = _bytes(done.stderr).decode("utf-8", "replace").strip()
        before, begun, output = _bytes(done.stdout).partition(_BEGUN)
        return CommandResult(done.exit_status, output if begun else before, shortened(complaint, 300))


async def line_of(process: SSHClientProcess[bytes], *words: bytes) -> bytes:
    """Returns the first line that starts with one of the words. Returns `b""` if the output ended before such a line.
    Other lines are skipped, because they may come from the user's start-up files."""
    while line := await process.stdout.readline():
        if line.split()[:1] in [[word] for word in words]:
            break
    return line


@cache
def connection_to(address: SshAddress) -> Link:
    """Returns the connection of this process to a machine."""
    return Link(address)


def waited(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in the thread of connections and returns its result. Ctrl-C cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def loop() -> asyncio.AbstractEventLoop:
    """Returns the event loop of the thread of connections. The thread runs until this process ends."""
    made = asyncio.new_event_loop()
    threading.Thread(target=made.run_forever, name="links", daemon=True).start()
    return made


def cpu_s() -> float:
    """Returns the CPU seconds that the thread of connections has used so far."""

    async def read() -> float:
        return time.thread_time()

    return waited(read())


def _bytes(text: bytes | str | None) -> bytes:
    return text.encode() if isinstance(text, str) else text or b""


def quoted(text: str) -> str:
    """Quotes a text as a single word for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


async def _connected(address: SshAddress) -> SSHClientConnection:
    import asyncssh

    where: dict[str, Any] = {}
    if address.port is not None:
        where["port"] = address.port
    if address.user:
        where["username"] = address.user
    ways = [where]
    # The host may be written with capitals, because `Host` in ~/.ssh/config is case-sensitive. In known_hosts, however,
    # ssh(1) stores names in lower case. Both spellings are therefore tried.
    if (small := address.host.lower()) != address.host:
        ways.append({**where, "host_key_alias": small})
    refused: Exception | None = None
    for way in ways:
        try:
            return await asyncssh.connect(
                address.host,
                **way,
                password=None,
                kbdint_auth=False,
                password_auth=False,
                connect_timeout=CONNECT_S,
                login_timeout=CONNECT_S,
                keepalive_interval=_ALIVE_S,
                keepalive_count_max=_ALIVE_MISSED,
            )
        except asyncssh.HostKeyNotVerifiable as error:
            refused = error
        except (TimeoutError, asyncssh.Error, OSError, ValueError) as error:
            raise await _refusal(address, refused or error) from None
    assert refused is not None
    raise await _refusal(address, refused)


async def _refusal(address: SshAddress, error: Exception) -> IronbenchError:
    """Converts the reason of a failed connection to an error with a hint."""
    import socket

    import asyncssh

    subject, by_hand = written(FIELD, address.text()), f"`{_command(address)}` shows the same error"
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _unknown_host(address, subject)
    if isinstance(error, asyncssh.PermissionDenied):
        cause = "the machine accepts none of your keys"
        hint = "`ssh-add -l` lists the keys of the agent, `ssh-add FILE` adds one with a passphrase, `ssh-copy-id` "
        return InputError(subject, cause, f"{hint}copies one to the machine; {by_hand}")
    if isinstance(error, (asyncssh.KeyImportError, asyncssh.KeyEncryptionError)):
        cause = f"a key cannot be used: {_words(error)}"
        return InputError(subject, cause, f"`ssh-add FILE` loads one with a passphrase into the agent; {by_hand}")
    if isinstance(error, (asyncssh.ConfigParseError, ValueError)):
        return InputError(subject, f"~/.ssh/config: {_words(error)}", "correct that line")
    if isinstance(error, socket.gaierror):
        return InputError(subject, "unknown host name", f"correct the name; {by_hand}")
    if isinstance(error, asyncio.TimeoutError):
        return FailureError(
            subject,
            f"no answer within {CONNECT_S:g} s",
            f"check that the machine is up and that ssh can reach it; {by_hand}",
        )
    if isinstance(error, ConnectionRefusedError):
        return FailureError(
            subject,
            "connection refused: no ssh server listens on this port",
            f"give the port of the ssh server; {by_hand}",
        )
    return FailureError(subject, _words(error), by_hand)


def _unknown_host(address: SshAddress, subject: str) -> InputError:
    """Returns the error for a host key that is unknown or has changed. A changed key may mean that the connection is
    intercepted."""
    cause = "the host key is not in known_hosts"
    hint = f"`{_command(address)}` shows the key; after you confirm it, ssh adds it to ~/.ssh/known_hosts"
    if _has_known_key(address):
        cause = "the host key differs from the one in known_hosts: another machine, or a man in the middle"
        name = address.host.lower()
        name = f"[{name}]:{address.port}" if address.port not in (None, 22) else name
        hint = f"ask its administrator; if the new key is correct: ssh-keygen -R '{name}', then {_command(address)}"
    return InputError(subject, cause, hint)


def _has_known_key(address: SshAddress) -> bool:
    from pathlib import Path

    import asyncssh

    for file in (Path.home() / ".ssh" / "known_hosts", Path("/etc/ssh/ssh_known_hosts")):
        try:
            known = asyncssh.read_known_hosts(str(file))
            keys = asyncssh.match_known_hosts(known, address.host.lower(), "", address.port)
        except (OSError, ValueError, asyncssh.Error):
            continue
        if any(keys[:2]):
            return True
    return False


def _command(address: SshAddress) -> str:
    port = f"-p {address.port} " if address.port is not None else ""
    return f"ssh {port}{address.user + '@' if address.user else ''}{address.host}"


def _words(error: BaseException) -> str:
    return shortened(str(error) or type(error).__name__, 200)
