"""A shell script that runs on a remote machine until its standard input ends.

The input ends when ironbench or the connection ends. A connection that goes silent has the same effect: ironbench sends
an empty line every few seconds, and the script waits at most `SILENT_S`. So a script can undo what it did, whatever
ends ironbench.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ironbench.errors import FailureError
from ironbench.host.remote import link
from ironbench.host.remote.link import Link, quoted

if TYPE_CHECKING:
    from asyncssh import SSHClientProcess

SILENT_S = 30
"""Seconds for which a script waits for the next line, if the connection goes silent without being closed."""
_KEEP_ALIVE_S = 5.0
_MADE_S = 30.0
"""Timeout for making or undoing a change. A change can take long, because it starts a process for each thread of the
server."""


@dataclass(slots=True)
class RunningScript:
    """A script that has made its change. Must be used in the thread of connections."""

    process: SSHClientProcess[bytes]
    first: list[str]
    """The line that the script printed when the change was made: `done` or `failed`, and more words."""
    rest: asyncio.Future[bytes]
    """All later output."""

    async def keep_alive(self) -> None:
        with contextlib.suppress(OSError):
            while not self.rest.done():
                self.process.stdin.write(b"\n")
                await asyncio.wait({self.rest}, timeout=_KEEP_ALIVE_S)

    async def end(self, last: bytes = b"", limit_s: float = _MADE_S) -> bytes:
        """Ends the script and returns its later output; b"" if the connection was lost. `last`: a line that is sent
        before the end of the input."""
        import asyncssh

        try:
            if not self.rest.done():
                self.process.stdin.write(last)
                self.process.stdin.write_eof()
            return await asyncio.wait_for(self.rest, limit_s)
        except (TimeoutError, asyncssh.Error, OSError):
            return b""
        finally:
            self.process.close()


async def begun(there: Link, script: str) -> RunningScript:
    """Starts the script and waits until the script has made the change. Raises FailureError."""
    import asyncssh

    process = None
    try:
        process = await there.process(f"exec sh -c {quoted(script)}")
        line = await asyncio.wait_for(link.line_of(process, b"done", b"failed"), _MADE_S)
    except (TimeoutError, asyncssh.Error, OSError) as error:
        if process is not None:
            process.close()
        cause = f"a shell script on that machine did not begin: {str(error) or 'no answer'}"
        raise FailureError(there.address.text(), cause) from None
    except asyncio.CancelledError:
        if process is not None:
            process.close()  # at the end of its input, the script undoes the change
        raise
    rest = asyncio.ensure_future(process.stdout.read())
    running = RunningScript(process, line.decode("utf-8", "replace").split(), rest)
    _kept_alive.add(task := asyncio.ensure_future(running.keep_alive()))
    task.add_done_callback(_kept_alive.discard)
    return running


_kept_alive: set[asyncio.Task[None]] = set()
"""Tasks that send lines to scripts. The tasks are stored here because the event loop keeps only weak references to
tasks (Python's documentation of `asyncio.create_task`)."""
