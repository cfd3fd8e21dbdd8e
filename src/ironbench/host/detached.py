"""A program that outlives us: in a session of its own, its output in a file, its exit status in another.

Who began it need not live when it ends: whoever looks later finds the status there.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.host import processes
from ironbench.host.processes import ProcessId

_WAITS = 'place=$1; shift; "$@"; code=$?; echo $code > "$place.tmp" && mv "$place.tmp" "$place"'
"""A shell that begins the program and writes its status whole or not at all. Signals are for the program."""


class Detached:
    """One that we began; it goes on when this is forgotten."""

    def __init__(
        self,
        words: Sequence[str],
        log: Path,
        status: Path,
        environment: Mapping[str, str],
        keep_open: Sequence[int] = (),
    ) -> None:
        """`keep_open`: descriptors that it holds until its end, e.g. locks. FailureError: it cannot be begun."""
        try:
            with log.open("ab") as output:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _WAITS, "sh", str(status), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=os.environ | dict(environment),
                    pass_fds=keep_open,
                    start_new_session=True,
                )
        except OSError as error:
            raise FailureError(words[0], f"cannot be begun: {error.strerror or error}") from error
        found = processes.identify(self._shell.pid)
        self.process = found or ProcessId(self._shell.pid, "")

    def reap(self) -> bool:
        """Whether it has ended; then nothing of it is left among the processes."""
        return self._shell.poll() is not None


def status_of(path: Path) -> int | None:
    """Its exit status; None: it runs, or was killed together with the shell that waited for it."""
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        return None
