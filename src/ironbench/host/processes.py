"""Processes identified for certain: a process id alone may have been given to another process since.

Only the standard library: the guard runs this without site-packages.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import FailureError

PROC = Path("/proc")
_STAT_STATE, _STAT_PPID, _STAT_SESSION, _STAT_START = 0, 1, 3, 19
"""Fields of /proc/PID/stat after the command's closing bracket: 3, 4, 6 and 22 of proc_pid_stat(5)."""
_STAT_CPU = slice(11, 15)
"""User and system time, its own and of children that it waited for: 14 to 17."""
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process id with the instant the process was born, so that a recycled id is never mistaken."""

    pid: int
    born: str
    """`boot id/start time in clock ticks since boot`."""

    def alive(self) -> bool:
        """Whether this very process runs still; a zombie does not."""
        return identify(self.pid) == self

    def signal(self, number: int) -> bool:
        """Sends a signal to this very process; False when it is gone or out of reach."""
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def wait(self, timeout_s: float) -> bool:
        """Waits for its end; whether it ended in time. For processes that are not our children."""
        deadline = time.monotonic() + timeout_s
        pause_s = 0.002
        while self.alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.1)
        return True


def identify(pid: int) -> ProcessId | None:
    """The process of that id, or None when there is none or it is a zombie."""
    fields = _stat(pid)
    if fields is None or fields[_STAT_STATE] in ("Z", "X"):
        return None
    return ProcessId(pid, f"{_boot_id()}/{fields[_STAT_START]}")


def own() -> ProcessId:
    """This process. FailureError without /proc, on which everything depends that ends what this process starts."""
    if (found := identify(os.getpid())) is None:
        cause = "is not mounted, so ironbench could not tell its processes from others and end them"
        raise FailureError("/proc", cause, "mount it: `mount -t proc proc /proc`")
    return found


def children(pid: int) -> list[int]:
    """Process ids of the direct children, ascending."""
    pids = []
    for other in _pids():
        fields = _stat(other)
        if fields is not None and fields[_STAT_PPID] == str(pid):
            pids.append(other)
    return sorted(pids)


def below(pid: int) -> list[ProcessId]:
    """Every process that it or one of these has started and that runs still."""
    parents = {one: int(fields[_STAT_PPID]) for one in _pids() if (fields := _stat(one)) is not None}
    descendants, each = set[int](), {pid}
    while each := {one for one, of in parents.items() if of in each} - descendants:
        descendants |= each
    return [one for number in sorted(descendants) if (one := identify(number)) is not None]


def state(pid: int) -> str:
    """What it does, as one letter of proc_pid_stat(5): `T` is stopped; empty when there is no such process."""
    fields = _stat(pid)
    return "" if fields is None else fields[_STAT_STATE]


def parent(pid: int) -> int | None:
    """Process id of the parent, or None when there is no such process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[_STAT_PPID])


def cpu_s(pid: int) -> float:
    """CPU time so far, with that of its children that have ended; 0 when there is no such process."""
    fields = _stat(pid)
    return 0.0 if fields is None else sum(map(int, fields[_STAT_CPU])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Used:
    """What processes have used so far, or meanwhile."""

    cpu_s: float = 0.0
    io_bytes: int = 0
    """Read from devices and written to them, as accounted to the processes themselves (proc_pid_io(5))."""

    def __add__(self, other: Used) -> Used:
        return Used(self.cpu_s + other.cpu_s, self.io_bytes + other.io_bytes)

    def __sub__(self, other: Used) -> Used:
        return Used(self.cpu_s - other.cpu_s, self.io_bytes - other.io_bytes)


def used(pids: Iterable[int]) -> Used:
    """By these processes so far, to the nanosecond of CPU time (Linux: Documentation/scheduler/sched-stats.rst)."""
    cpu_ns = io_bytes = 0
    for pid in pids:
        for task in (PROC / str(pid) / "task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                cpu_ns += int(task.read_text().split()[0])
        with contextlib.suppress(OSError, ValueError):
            lines = (line.partition(":") for line in (PROC / str(pid) / "io").read_text().splitlines())
            io_bytes += sum(int(value) for name, _, value in lines if name in ("read_bytes", "write_bytes"))
    return Used(cpu_ns / 1e9, io_bytes)


def bind(pids: Iterable[int], cpus: Iterable[int]) -> None:
    """Every thread of these processes, which start none meanwhile, runs on these CPUs alone. OSError: it may not."""
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in (PROC / str(pid) / "task").iterdir():
                os.sched_setaffinity(int(task.name), cpus)


def started_unix_s(pid: int) -> float | None:
    """When the process was born, within some hundredths of a second."""
    fields = _stat(pid)
    if fields is None:
        return None
    up_s = float((PROC / "uptime").read_text().split()[0])
    return time.time() - up_s + int(fields[_STAT_START]) / os.sysconf("SC_CLK_TCK")


def command(pid: int) -> str:
    """Name of the program it runs (at most 15 characters), "" when there is no such process."""
    try:
        return (PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def working_in(directory: Path, *, below: bool = False) -> list[int]:
    """Processes whose working directory is `directory`, as a database server's is its data directory.

    `below`: or a directory in it.
    """
    path = os.path.realpath(directory)
    pids = []
    for pid in _pids():
        try:
            where = str((PROC / str(pid) / "cwd").readlink())
        except OSError:
            continue
        if where == path or (below and where.startswith(f"{path}/")):
            pids.append(pid)
    return sorted(pids)


def pid_namespace() -> str:
    """Tells apart containers that share a directory but not their process ids."""
    try:
        return str((PROC / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""


def end(process: ProcessId, gentle: int, patience_s: float, forceful: int = signal.SIGQUIT) -> bool:
    """Ends a process: `gentle`, after `patience_s` `forceful`, after 10 s more SIGKILL. False: it lives on."""
    for number, wait_s in ((gentle, patience_s), (forceful, 10.0), (signal.SIGKILL, 10.0)):
        process.signal(number)
        if process.wait(wait_s):
            return True
    return False


def end_session(leader: int, patience_s: float, reap: Callable[[], object] = lambda: None) -> None:
    """Ends every process of the session that `leader` began, and their descendants in sessions of their own.

    The leader lives, or has not been waited for: its id is nobody else's. `reap`: waits for it where it is our child.
    """
    deadline = time.monotonic() + patience_s
    number: int = signal.SIGTERM
    while left := _of_session(leader):
        for one in left:
            one.signal(number)
        if time.monotonic() >= deadline:
            if number == signal.SIGKILL:
                return  # out of reach, as a program of another user
            number, deadline = signal.SIGKILL, time.monotonic() + patience_s
        time.sleep(0.02)
        reap()


def _of_session(leader: int) -> list[ProcessId]:
    fields = {pid: members for pid in _pids() if (members := _stat(pid)) is not None}
    own = {pid for pid, one in fields.items() if pid == leader or one[_STAT_SESSION] == str(leader)}
    while more := {pid for pid, one in fields.items() if int(one[_STAT_PPID]) in own} - own:
        own |= more
    return [one for pid in sorted(own) if (one := identify(pid)) is not None]


def _pids() -> Iterator[int]:
    for path in PROC.iterdir():
        if path.name.isdigit():
            yield int(path.name)


def _stat(pid: int) -> list[str] | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()


def _boot_id() -> str:
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@contextlib.contextmanager
def interrupt_held() -> Iterator[None]:
    """A Ctrl-C inside takes effect at the end: nothing may come between starting a thing and knowing that it runs. The
    same for signals that `ended_as_by_interrupt` turned into one.

    Only the main thread is ever interrupted (Python's documentation of `signal`, "Signals and threads").
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    if threading.current_thread() is not threading.main_thread() or not before:
        yield
        return
    held: list[int] = []
    for number in before:
        signal.signal(number, lambda number, _: held.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


@contextlib.contextmanager
def ended_as_by_interrupt() -> Iterator[None]:
    """Inside, a request to end and a terminal that closes do what Ctrl-C does: what was begun is undone first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:  # nohup(1) has the terminal's end ignored
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def woken_by(*numbers: signal.Signals) -> int:
    """A descriptor from which the number of each of these signals is read once it has arrived; nothing else happens."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return woken
