"""Starts ironbench in a new session, so that the program outlives the process that starts it.

The output goes to a log. Two more files, which any process can read later, contain the exit status and the error that
ended the program.
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

_RUN_AND_WRITE_STATUS = 'place=$1; shift; "$@"; code=$?; echo $code > "$place.tmp" && mv "$place.tmp" "$place"'
"""Shell command that runs the program and then writes its exit status atomically. The shell does not pass signals on,
so a signal for the program must be sent to the shell's child."""
_FAILURE = "IRONBENCH_FAILURE_FILE"
"""Environment variable with the path of the file to which the program writes the error that ends it."""


class Detached:
    """A program that was started in a new session. The program continues when this object is deleted."""

    def __init__(
        self,
        words: Sequence[str],
        log: Path,
        status: Path,
        environment: Mapping[str, str],
        keep_open: Sequence[int] = (),
    ) -> None:
        """Starts the program. Raises FailureError.

        `status`: path of the file for the program's exit status. The file for the program's error is in the same
        directory. `keep_open`: descriptors that the program inherits, such as locks.
        """
        for left in (status, _failure_file(status)):  # an earlier start may have left them
            left.unlink(missing_ok=True)
        try:
            with log.open("ab") as output:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _RUN_AND_WRITE_STATUS, "sh", str(status), *words],
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
        self.shell = found or ProcessId(self._shell.pid, "")

    def reap(self) -> bool:
        """Returns whether the program has ended. If so, removes the zombie process."""
        return self._shell.poll() is not None


def status_of(path: Path) -> int | None:
    """Returns the exit status. Returns None if the program is still running, or if it was killed together with the
    shell that waited for it."""
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
    """Returns the error that ended a program, given the path of the program's status file. Returns None if the program
    ended without an error."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return FailureError(**json.loads(_failure_file(status).read_text()))
    return None


def _failure_file(status: Path) -> Path:
    return status.with_name("failure.json")
