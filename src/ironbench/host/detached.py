"""Programs that outlive ironbench: each runs in its own session and writes its output and its exit status to files.

A later ironbench process can read the exit status from the file.
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
"""Shell that starts the program and writes its exit status atomically. Signals go to the program."""


class Detached:
    """A program that this process started; it continues to run after this object is deleted."""

    def __init__(
        self,
        words: Sequence[str],
        log: Path,
        status: Path,
        environment: Mapping[str, str],
        keep_open: Sequence[int] = (),
    ) -> None:
        """Starts the program. `keep_open`: descriptors that it inherits, such as locks. Raises FailureError if it
        cannot start."""
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
        """Whether the program has ended; if so, its zombie process is removed."""
        return self._shell.poll() is not None


def status_of(path: Path) -> int | None:
    """Returns the exit status; None while the program runs, or if it was killed together with its shell."""
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        return None
