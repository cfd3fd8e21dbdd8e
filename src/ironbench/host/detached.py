"""Starts ironbench in a new session, so that the program outlives the process that starts it.

The output goes to a log. Two more files get the exit status and the error that ended the program; any process can read
them later.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path

from ironbench.errors import FailureError, IronbenchError
from ironbench.host import processes
from ironbench.host.processes import ProcessId

_WAITS = 'place=$1; shift; "$@"; code=$?; echo $code > "$place.tmp" && mv "$place.tmp" "$place"'
"""A shell that starts the program and writes its status whole or not at all. Signals go to the program."""
_FAILURE = "IRONBENCH_FAILURE_FILE"
"""Environment variable with the path of the file for the error that ends the program."""


class Detached:
    """A started program. The program continues when this object is deleted."""

    def __init__(
        self,
        words: Sequence[str],
        log: Path,
        status: Path,
        environment: Mapping[str, str],
        keep_open: Sequence[int] = (),
    ) -> None:
        """Starts the program. FailureError.

        `status`: the file for its exit status; its error goes to a file beside it. `keep_open`: descriptors that the
        program inherits, e.g. locks.
        """
        for left in (status, _failure_file(status)):  # by an earlier start
            left.unlink(missing_ok=True)
        try:
            with log.open("ab") as output:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _WAITS, "sh", str(status), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=os.environ | dict(environment) | {_FAILURE: str(_failure_file(status))},
                    pass_fds=keep_open,
                    start_new_session=True,
                )
        except OSError as error:
            raise FailureError(words[0], f"cannot be started: {error.strerror or error}") from error
        found = processes.identify(self._shell.pid)
        self.process = found or ProcessId(self._shell.pid, "")

    def reap(self) -> bool:
        """Whether the program has ended. If so, this removes the zombie process."""
        return self._shell.poll() is not None


def status_of(path: Path) -> int | None:
    """Returns the exit status; None: the program runs, or was killed together with the shell that waited for it."""
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        return None


def report_failure(error: IronbenchError, environ: MutableMapping[str, str] = os.environ) -> None:
    """Writes the error that ends this program, if it was started by `Detached`."""
    if path := environ.get(_FAILURE, ""):
        content = {"subject": error.subject, "cause": error.cause, "hint": error.hint}
        with contextlib.suppress(OSError):
            Path(path).write_text(json.dumps(content))


def failure_of(status: Path) -> IronbenchError | None:
    """Returns the error that ended a program, by the path of its status; None: it ended without one."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return FailureError(**json.loads(_failure_file(status).read_text()))
    return None


def _failure_file(status: Path) -> Path:
    return status.with_name("failure.json")
