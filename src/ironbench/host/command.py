"""Runs a user's command in a shell with limits on time and output, or asks a person to carry it out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ironbench.host import processes, scratch
from ironbench.host.processes import ProcessId
from ironbench.host.programs import last_words
from ironbench.model.secrets import hidden

MOST_BYTES = 1 << 20
"""Maximum size of the output in bytes. A command that writes more is stopped, as is a command that takes too long."""
_PATIENCE_S = 2.0
"""Seconds that processes have to end after SIGTERM."""
_POLL_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended."""

    status: int | None
    """Exit status. If a signal ended the command, this is the negative number of the signal. The value is None if
    ironbench stopped the command, or if the command never ran."""
    took_s: float
    output: str = ""
    """Standard output and standard error of the command, without passwords."""
    cause: str = ""
    """Why the command failed, with the end of its output, or "" if the command succeeded."""


def run(
    text: str,
    folder: str,
    environment: Mapping[str, str],
    limit_s: float,
    begun: Callable[[ProcessId | None], None] = lambda _: None,
    without_passwords: Callable[[str], str] = hidden,
) -> CommandEnd:
    """Runs `text` with `sh -c` in `folder`, with empty standard input and with this process's environment plus
    `environment`.

    `begun` is called with the shell's process id. If the command ends by itself, processes that it left running
    continue. If it exceeds its limit or ironbench is interrupted, all of its processes are ended. Output goes to a
    file, because with a pipe ironbench would have to wait for every process that inherited the pipe.
    """
    began = time.monotonic()
    with scratch.folder() as own, (own / "output").open("wb") as output:
        shell = None
        try:
            with processes.interrupt_held():
                shell = subprocess.Popen(
                    ["/bin/sh", "-c", text],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=folder,
                    env=os.environ | dict(environment),
                    start_new_session=True,  # no prompts on the terminal, and no Ctrl-C from it
                )
                begun(processes.identify(shell.pid))
        except BaseException as error:
            if shell is not None:
                _end(shell)  # after an interrupt or an error in `begun`, no other code ends the shell
            elif isinstance(error, OSError):
                return CommandEnd(None, 0.0, cause=f"cannot be run in {folder}: {error.strerror or error}")
            raise
        stopped = _stopped(shell, own / "output", began + limit_s, limit_s)
        took_s, words = time.monotonic() - began, without_passwords(_read(own / "output"))
    if stopped:
        return CommandEnd(None, took_s, words, _with_words(stopped, words))
    status = shell.returncode
    if status < 0:
        return CommandEnd(status, took_s, words, _with_words(f"was killed by {_signal(-status)}", words))
    return CommandEnd(status, took_s, words, _with_words(f"exited with status {status}", words) if status else "")


def terminal() -> bool:
    """Returns whether ironbench can ask the user on a terminal."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def by_a_person(text: str, say: Callable[[str], None]) -> CommandEnd:
    """Shows `text` and waits without a time limit until the user presses Enter. Raises KeyboardInterrupt."""
    began = time.monotonic()
    if not terminal():
        return CommandEnd(None, 0.0, cause="there is no terminal to prompt on")
    say(f"\a>>> {text}")
    if sys.stdin.readline() == "":
        return CommandEnd(None, time.monotonic() - began, cause="the terminal was closed before Enter was pressed")
    return CommandEnd(0, time.monotonic() - began)


def _stopped(shell: subprocess.Popen[bytes], output: Path, deadline: float, limit_s: float) -> str:
    """Waits until the command ends. Returns why ironbench stopped the command, or "" if it ended by itself."""
    pause_s = 0.001
    try:
        while True:
            # Interrupts are delayed here. An interrupt inside `poll` could leave the lock of `poll` held (CPython 3.11,
            # `Popen._internal_poll`). Later calls of `wait` would then never return.
            with processes.interrupt_held():
                if shell.poll() is not None:
                    return ""
            time.sleep(max(0.0, min(pause_s, deadline - time.monotonic())))
            pause_s = min(2 * pause_s, _POLL_INTERVAL_S)
            if output.stat().st_size > MOST_BYTES:
                reason = f"wrote more than {MOST_BYTES >> 10} KiB and was terminated"
            elif time.monotonic() >= deadline:
                reason = f"took longer than its limit of {limit_s:g} s and was terminated"
            else:
                continue
            _end(shell)
            return reason
    except BaseException:
        _end(shell)
        raise


def _end(shell: subprocess.Popen[bytes]) -> None:
    with processes.interrupt_held():
        processes.end_session(shell.pid, _PATIENCE_S, shell.poll)
        shell.wait()


def _with_words(reason: str, output: str) -> str:
    return f"{reason}: {last_words(output)}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read(path: Path) -> str:
    """Reads the output. If the output is too long, reads only whole lines from its start, because a password that is
    cut off could not be recognised and masked."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        content = content[: content.rfind(b"\n") + 1]
    return content.decode(errors="replace")
