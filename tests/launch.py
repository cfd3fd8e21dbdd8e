"""Runs commands of ironbench in separate processes, without the half second for their imports.

One process for all tests of a worker imports the program. Each command is a fork of this process with its own words,
environment, directory, streams and CPUs, and runs `main`. It ends as an interpreter does, but without releasing the
imported modules: in a fork this would copy every page (0.3 s of CPU time for `--version`). Start and end of a fresh
interpreter are tested by tests/unit/test_environment.py.
"""

from __future__ import annotations

import atexit
import gc
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

import made_once

from ironbench.host.child import Channel

SOURCE = Path(__file__).parents[1] / "src"
_CODE = "import launch, sys; launch.serve(int(sys.argv[1])); launch.command()"
Done = subprocess.CompletedProcess[str]
_BESIDE = ("scipy.special", "rich.progress", "typer._adapters")
"""Modules that the program imports only when it needs them, and that many tests need."""


def run(
    words: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
    timeout_s: float = 120.0,
    within: Sequence[str] = (),
) -> Done:
    """Runs a command to its end."""
    process = Command(words, env=env, cwd=cwd, stdin=stdin, within=within)
    try:
        stdout, stderr = process.communicate(timeout_s)
    finally:
        process.kill()
        process.close()
    return Done(list(words), process.wait(), stdout, stderr)


class Command:
    """A running command, with the members of `subprocess.Popen` that tests need."""

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: str = "",
        stderr: IO[Any] | None = None,
        within: Sequence[str] = (),
    ) -> None:
        """Starts a command. `stderr`: file for standard error; None: `communicate` returns it. `within`: words before
        the command."""
        self.returncode: int | None = None
        self._kept: dict[int, bytes] = {}
        given, give = os.pipe()
        os.write(give, stdin.encode())  # tests pass less than a pipe's capacity
        os.close(give)
        out, stdout = os.pipe()
        err, errors = os.pipe() if stderr is None else (None, stderr.fileno())
        asked = {
            "words": [str(word) for word in words],
            "environment": dict(os.environ if env is None else env),
            "folder": str(cwd or Path.cwd()),
            "cpus": sorted(os.sched_getaffinity(0)),
        }
        self._template = _template(tuple(within))
        self.pid = int(self._template.ask(asked, (given, stdout, errors)))
        self._ended = os.pidfd_open(self.pid)
        self._pipes = [out] if err is None else [out, err]
        for end in (given, stdout) if err is None else (given, stdout, errors):
            os.close(end)

    def poll(self) -> int | None:
        return self.wait(0.0, required=False)

    def wait(self, timeout: float | None = None, required: bool = True) -> int | None:
        """Returns the exit status of the command. If the command does not end in time, raises TimeoutExpired, or
        returns None if the end is not `required`."""
        if self.returncode is None:
            with selectors.DefaultSelector() as ready:
                ready.register(self._ended, selectors.EVENT_READ)
                if ready.select(timeout):
                    self.returncode = int(self._template.ask({"ended": self.pid}))
                    os.close(self._ended)
        if self.returncode is None and required:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Returns its stdout and stderr until both are closed, and waits for its end."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with selectors.DefaultSelector() as ready:
            for pipe in self._pipes:
                self._kept.setdefault(pipe, b"")
                ready.register(pipe, selectors.EVENT_READ)
            while ready.get_map():
                if not (found := ready.select(_left(deadline))):
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0, *self._kept.values())
                for key, _ in found:
                    if not (piece := os.read(key.fd, 1 << 16)):
                        ready.unregister(key.fd)
                    self._kept[key.fd] += piece
        self.wait(_left(deadline))
        written = [data.decode() for data in self._kept.values()]
        self.close()
        return written[0], "".join(written[1:])

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Closes its streams. May be called twice."""
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes = []


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


class _Template(Channel):
    """The tests' end of the connection to the process that is forked for commands."""

    def __init__(self, within: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        path = os.pathsep.join((str(SOURCE), str(Path(__file__).parent)))
        with theirs:
            self._process = subprocess.Popen(
                [*within, sys.executable, "-c", _CODE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # A pool of threads would not survive a fork.
                env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
            )

    def ask(self, message: dict[str, Any], files: Sequence[int] = ()) -> Any:
        self.send(message)
        if files:
            socket.send_fds(self.socket, [b"f"], files)
        frame = self.receive()
        assert frame is not None, "the process that commands are forks of has ended"
        return frame[0]

    def end(self) -> None:
        self.close()
        self._process.wait()


@cache
def _template(within: tuple[str, ...]) -> _Template:
    template = _Template(within)
    atexit.register(template.end)
    return template


def serve(line: int) -> None:
    """Serves the template process. Returns in each fork, as the process of a command, and exits when the tests
    disconnect."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is handled by the tests
    _import_everything()
    made_once.replace()
    gc.freeze()  # a fork that collects garbage would copy every page of the imported modules
    tests = Channel(socket.socket(fileno=line))
    while (frame := tests.receive()) is not None:
        message = frame[0]
        if "ended" in message:
            tests.send(os.waitstatus_to_exitcode(os.waitpid(message["ended"], 0)[1]))
            continue
        _, files, _, _ = socket.recv_fds(tests.socket, 1, 3)
        if child := os.fork():
            for file in files:
                os.close(file)
            tests.send(child)
            continue
        tests.close()
        _become(message, files)
        return
    os._exit(0)


def command() -> NoReturn:
    """Runs the program and the first steps of `Py_FinalizeEx`: threads end, exit handlers run, garbage and streams are
    flushed."""
    from ironbench.start import main

    code: Any = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # without imported modules, which are frozen
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or 0)


def _import_everything() -> None:
    import ironbench
    from ironbench import catalogue, workloads
    from ironbench.catalogue import devices
    from ironbench.records import make
    from ironbench.trial import observe

    for module in pkgutil.walk_packages(ironbench.__path__, "ironbench."):
        import_module(module.name)
    for name in _BESIDE:
        import_module(name)
    for read in (catalogue.metrics, devices.device_models, observe.observers, workloads.names, make.software):
        read()  # and caches it: these facts depend only on the installation


def _become(asked: Mapping[str, Any], files: Sequence[int]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored if nohup(1) runs the tests
    os.chdir(asked["folder"])
    os.sched_setaffinity(0, asked["cpus"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for stream, file in enumerate(files):
        os.dup2(file, stream)
        os.close(file)
    # Opening a stream determines what it supports.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["ironbench", *asked["words"]]
