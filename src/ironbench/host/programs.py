"""Third-party programs (a server's tools, mount, tar): runs them, and ends them when ironbench no longer needs them.

Child processes run this module without site-packages, so it uses only the standard library.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import IO, Any

from ironbench.errors import FailureError, ProgramError
from ironbench.host import trust

_WATCH_S = 10.0
_PATIENCE_S = 5.0
"""Seconds that a program has to end after SIGTERM."""


def _start(
    words: Sequence[str],
    environment: Mapping[str, str] | None,
    folder: str = "/",
    *,
    stdin: int = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.PIPE,
    text: bool = True,
) -> subprocess.Popen[Any]:
    """Starts a program that ends when this process ends and that leads a process group. Raises FailureError if the
    program cannot run."""
    # The program is started by setpriv(1), which ties it to this process. setpriv(1) would report a missing program
    # with a different message, so a missing program is detected here.
    if shutil.which(words[0], path=(os.environ if environment is None else environment).get("PATH")) is None:
        raise FailureError(words[0], "cannot be run: No such file or directory", f"is {words[0]} installed?")
    try:
        return subprocess.Popen(
            [*tied(), *words],
            env=environment,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            text=text,
            errors="replace" if text else None,
            cwd=folder,
            # Ctrl-C in the terminal does not reach the program. This process ends the program.
            process_group=0,
        )
    except OSError as error:
        cause = f"cannot be run: {error.strerror or error}"
        raise FailureError(words[0], cause, f"is {words[0]} installed?") from error


class Program:
    """A program that runs until it ends by itself or another thread cancels it.

    `watch` is called every ten seconds while the program runs. An exception from `watch` ends the program.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str] | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        self._words = list(words)
        self._watch = watch
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None
        self._cancelled = False
        self._lock = threading.Lock()

    def run(self) -> None:
        """Runs the program. Raises FailureError with the end of its output, unless the program was cancelled."""
        with self._lock:
            if self._cancelled:
                return
            self._process = _start(self._words, self._environment)
        try:
            messages = self._messages(self._process)
        except BaseException:
            self.cancel()
            raise
        if self._process.returncode != 0 and not self._cancelled:
            cause = f"exited with status {self._process.returncode}: {last_words(messages)}"
            raise FailureError(self._words[0], cause)

    def _messages(self, process: subprocess.Popen[str]) -> str:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=_WATCH_S)[1]
            self._watch()

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._process is None:
                return
        # The whole process group gets the signal, because children of the program would otherwise continue.
        _signal_group(self._process, signal.SIGTERM)
        threading.Thread(target=self._end, args=(self._process,), daemon=True).start()

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
        _signal_group(process, signal.SIGKILL)


def streamed(
    words: Sequence[str],
    environment: Mapping[str, str],
    heard: Callable[[str], None],
    idle: Callable[[], None],
    given: Iterable[bytes] | None,
) -> int:
    """Runs a program, passes each line of its standard error to `heard`, and returns its exit status.

    `given`: standard input of the program. `idle` is called about once a second. An exception from `heard`, `idle` or
    `given` ends the program and its children. Raises FailureError if the program cannot run.
    """
    lines: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    process = _start(words, environment, "/", stdin=stdin)
    reader = threading.Thread(target=_read_lines, args=(process, lines), daemon=True)
    reader.start()
    if given is not None:
        threading.Thread(target=_write, args=(process, given, lines), daemon=True).start()
    try:
        asked_s = time.monotonic()
        while True:
            with contextlib.suppress(queue.Empty):
                if (line := lines.get(timeout=_IDLE_S)) is None:
                    return process.wait()
                if isinstance(line, BaseException):
                    raise line
                heard(line)
            if time.monotonic() - asked_s >= _IDLE_S:
                asked_s = time.monotonic()
                idle()
    except BaseException:
        _signal_group(process, signal.SIGTERM)
        Program._end(process)
        process.wait()
        raise


_AHEAD_BYTES = 1 << 20
"""Size of the pipe in bytes: the maximum for an ordinary user (pipe(7)). A large pipe lets both sides work at the same
time."""


def fed(words: Sequence[str], environment: Mapping[str, str], pieces: Iterable[bytes]) -> str:
    """Runs a program with `pieces` as standard input and returns its standard error. Raises FailureError if the program
    cannot run or fails.

    An exception while the next piece is produced ends the program.
    """
    with tempfile.TemporaryFile() as messages:
        process = _start(words, environment, stdin=subprocess.PIPE, stderr=messages, text=False)
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # without permission, the default size is used
            fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _AHEAD_BYTES)
        try:
            with contextlib.suppress(BrokenPipeError):  # the program has ended and printed the reason
                for piece in pieces:
                    process.stdin.write(piece)
                process.stdin.close()
            status = process.wait()
        except BaseException:
            _signal_group(process, signal.SIGKILL)
            process.wait()
            raise
        messages.seek(0)
        text = messages.read().decode(errors="replace")
    if status != 0:
        raise FailureError(words[0], f"exited with status {status}: {last_words(text)}")
    return text


_IDLE_S = 1.0


def _write(
    process: subprocess.Popen[str], pieces: Iterable[bytes], lines: queue.SimpleQueue[str | BaseException | None]
) -> None:
    assert isinstance(process.stdin, io.TextIOWrapper)
    raw = process.stdin.buffer
    try:
        for piece in pieces:
            raw.write(piece)
        raw.close()
    except OSError:
        pass  # the program has ended and printed the reason
    except BaseException as error:
        lines.put(error)


def _read_lines(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | BaseException | None]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def _signal_group(process: subprocess.Popen[Any], what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, what)


def environment_without(*prefixes: str) -> dict[str, str]:
    """Returns the environment for a program, which selects English messages and the time zone UTC. Variables with one
    of the prefixes are left out, for example because they would select another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}


def run_program(
    words: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = 60.0,
    given: str = "",
) -> subprocess.CompletedProcess[str]:
    """Runs a program with a text as standard input. Returns its status and output. Raises FailureError if the program
    cannot run or exceeds the timeout."""
    if trust.is_withheld(words):
        raise FailureError(
            words[0],
            "is a program from a lab file, which ironbench runs only with `--trust`",
            "if you trust the file, add --trust",
        )
    try:
        return subprocess.run(
            words,
            env=environment,
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd="/",
            timeout=timeout_s,
        )
    except OSError as error:
        raise FailureError(
            words[0], f"cannot be run: {error.strerror or error}", f"is {words[0]} installed?"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise FailureError(words[0], f"did not end within {error.timeout:.0f} s") from error


def output(words: Sequence[str], subject: str = "", *, timeout_s: float | None = 60.0) -> str:
    """Returns the standard output of a program. Raises ProgramError with the end of the output if the program fails."""
    done = run_program(words, timeout_s=timeout_s)
    if done.returncode != 0:
        said = done.stderr or done.stdout
        error = ProgramError(subject or " ".join(words), f"{words[0]} failed: {last_words(said)}")
        error.said = said
        raise error
    return done.stdout


def works(*words: str) -> bool:
    """Returns whether a program exists and succeeds."""
    try:
        return run_program(words).returncode == 0
    except FailureError:
        return False


@cache
def tied() -> tuple[str, ...]:
    """Returns a command prefix that makes the kernel kill a program when its parent dies. Returns an empty prefix if
    setpriv(1) lacks this option, as in BusyBox.

    Without the prefix, a program could continue after its ironbench was killed, and could then change files that
    another ironbench process uses.
    """
    words = ("setpriv", "--pdeathsig", "KILL")
    return words if works(*words, "true") else ()


def last_words(text: str, lines: int = 3) -> str:
    """Returns the last non-empty lines of a text, for a message."""
    written = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(written[-lines:]) or "no output"
