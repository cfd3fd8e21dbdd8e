"""A user's own command: by a shell in a session of its own, bounded in time and output; or carried out by a person."""

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
"""Of output; a command that writes more is ended like one that takes too long."""
_PATIENCE_S = 2.0
"""How long its processes may take to end once they were told to."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    status: int | None
    """Exit status; negative: the signal that ended it; None: we ended it, or it never ran."""
    took_s: float
    output: str = ""
    """Standard output and error, without passwords."""
    cause: str = ""
    """Why it failed, with its own words; empty when it did not."""


def run(
    text: str,
    folder: str,
    environment: Mapping[str, str],
    limit_s: float,
    begun: Callable[[ProcessId | None], None] = lambda _: None,
    without_passwords: Callable[[str], str] = hidden,
) -> Ended:
    """Runs `text` with `sh -c` in `folder`, with nothing to read. `environment` is added to ours; `begun` is told of
    the shell. What it left running when it ended by itself stays; at its limit, or when we are interrupted, all ends.

    Its output goes to a file: whoever inherited a pipe would make us wait for them.
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
                    start_new_session=True,  # no terminal to ask on, and the terminal's Ctrl-C is for us to pass on
                )
                begun(processes.identify(shell.pid))
        except BaseException as error:
            if shell is not None:
                _end(shell)  # an interrupt that came meanwhile, or `begun`: nobody would wait for it
            elif isinstance(error, OSError):
                return Ended(None, 0.0, cause=f"cannot be run in {folder}: {error.strerror or error}")
            raise
        stopped = _stopped(shell, own / "output", began + limit_s, limit_s)
        took_s, words = time.monotonic() - began, without_passwords(_read(own / "output"))
    if stopped:
        return Ended(None, took_s, words, _with_words(stopped, words))
    status = shell.returncode
    if status < 0:
        return Ended(status, took_s, words, _with_words(f"was ended by {_signal(-status)}", words))
    return Ended(status, took_s, words, _with_words(f"ended with {status}", words) if status else "")


def terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def by_a_person(text: str, say: Callable[[str], None]) -> Ended:
    """Shows `text` and waits for Enter, as long as that takes. KeyboardInterrupt."""
    began = time.monotonic()
    if not terminal():
        return Ended(None, 0.0, cause="there is no terminal on which somebody could be asked")
    say(f"\a>>> {text}")
    if sys.stdin.readline() == "":
        return Ended(None, time.monotonic() - began, cause="the terminal was closed before anybody pressed Enter")
    return Ended(0, time.monotonic() - began)


def _stopped(shell: subprocess.Popen[bytes], output: Path, deadline: float, limit_s: float) -> str:
    """Waits for the end; why we brought it about, empty where it came by itself."""
    try:
        while True:
            try:
                shell.wait(max(0.0, min(_LOOK_S, deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                pass
            else:
                return ""
            if output.stat().st_size > MOST_BYTES:
                reason = f"wrote more than {MOST_BYTES >> 10} KiB and was ended"
            elif time.monotonic() >= deadline:
                reason = f"took longer than its limit of {limit_s:g} s and was ended"
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
    """Of too much output the whole lines of its beginning: half a password is hidden nowhere."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        content = content[: content.rfind(b"\n") + 1]
    return content.decode(errors="replace")
