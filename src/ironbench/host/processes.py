"""Processes identified by id and start time, because the kernel may give the id of an ended process to another process.

The guard runs this module without site-packages, so it uses only the standard library.
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
"""Positions of fields of /proc/PID/stat after the command's closing bracket: fields 3, 4, 6 and 22 of
proc_pid_stat(5)."""
_STAT_CPU = slice(11, 15)
"""Positions of the user and system time of the process and of children that it waited for: fields 14 to 17."""
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process id with the start time of the process, so that a reused id is not mistaken for the process."""

    pid: int
    born: str
    """Start of the process in the form `boot id/start time in clock ticks since boot`."""

    def alive(self) -> bool:
        """Returns whether this process is still running; a zombie is not."""
        return identify(self.pid) == self

    def signal(self, number: int) -> bool:
        """Sends a signal to this process. Returns False if it has ended or may not be signalled."""
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end of a process that is not a child of this process. Returns whether it ended in time."""
        deadline = time.monotonic() + timeout_s
        pause_s = 0.002
        while self.alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.1)
        return True


def identify(pid: int) -> ProcessId | None:
    """Returns the process with this id. Returns None if there is no such process, or if it is a zombie."""
    fields = _stat(pid)
    if fields is None or fields[_STAT_STATE] in ("Z", "X"):
        return None
    return ProcessId(pid, f"{_boot_id()}/{fields[_STAT_START]}")


def this_process() -> ProcessId:
    """Returns this process. Raises FailureError if /proc is not mounted, because without /proc the processes that this
    process starts could not be ended."""
    if (found := identify(os.getpid())) is None:
        cause = "is not mounted, so ironbench could not identify and stop the processes that it starts"
        raise FailureError("/proc", cause, "mount it: `mount -t proc proc /proc`")
    return found


def children(pid: int) -> list[int]:
    """Returns the process ids of the direct children, ascending."""
    pids = []
    for other in _pids():
        fields = _stat(other)
        if fields is not None and fields[_STAT_PPID] == str(pid):
            pids.append(other)
    return sorted(pids)


def below(pid: int) -> list[ProcessId]:
    """Returns all running descendants of a process."""
    parents = {one: int(fields[_STAT_PPID]) for one in _pids() if (fields := _stat(one)) is not None}
    descendants, each = set[int](), {pid}
    while each := {one for one, of in parents.items() if of in each} - descendants:
        descendants |= each
    return [one for number in sorted(descendants) if (one := identify(number)) is not None]


def state(pid: int) -> str:
    """Returns the state of a process as a letter of proc_pid_stat(5): `T`, for example, means stopped. Returns "" if
    there is no such process."""
    fields = _stat(pid)
    return "" if fields is None else fields[_STAT_STATE]


def parent(pid: int) -> int | None:
    """Returns the process id of the parent. Returns None if there is no such process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[_STAT_PPID])


def cpu_s(pid: int) -> float:
    """Returns the CPU seconds used so far, including children that have ended. Returns 0 if there is no such
    process."""
    fields = _stat(pid)
    return 0.0 if fields is None else sum(map(int, fields[_STAT_CPU])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Resources that processes have used, in total or during a period."""

    cpu_s: float = 0.0
    io_bytes: int = 0
    """Bytes read from and written to devices, as accounted to the processes themselves (proc_pid_io(5))."""

    def __add__(self, other: ResourceUsage) -> ResourceUsage:
        return ResourceUsage(self.cpu_s + other.cpu_s, self.io_bytes + other.io_bytes)

    def __sub__(self, other: ResourceUsage) -> ResourceUsage:
        return ResourceUsage(self.cpu_s - other.cpu_s, self.io_bytes - other.io_bytes)


def used(pids: Iterable[int]) -> ResourceUsage:
    """Returns the resources that these processes have used so far. CPU time is read with a resolution of nanoseconds
    (Linux: Documentation/scheduler/sched-stats.rst)."""
    cpu_ns = io_bytes = 0
    for pid in pids:
        for task in (PROC / str(pid) / "task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                cpu_ns += int(task.read_text().split()[0])
        with contextlib.suppress(OSError, ValueError):
            lines = (line.partition(":") for line in (PROC / str(pid) / "io").read_text().splitlines())
            io_bytes += sum(int(value) for name, _, value in lines if name in ("read_bytes", "write_bytes"))
    return ResourceUsage(cpu_ns / 1e9, io_bytes)


def bind(pids: Iterable[int], cpus: Iterable[int]) -> None:
    """Pins every thread of these processes to these CPUs. The processes must not start threads at the same time. Raises
    OSError if not permitted."""
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in (PROC / str(pid) / "task").iterdir():
                os.sched_setaffinity(int(task.name), cpus)


def started_unix_s(pid: int) -> float | None:
    """Returns the start time of the process in seconds since 1970, accurate to some hundredths of a second."""
    fields = _stat(pid)
    if fields is None:
        return None
    up_s = float((PROC / "uptime").read_text().split()[0])
    return time.time() - up_s + int(fields[_STAT_START]) / os.sysconf("SC_CLK_TCK")


def command(pid: int) -> str:
    """Returns the name of the program that the process runs (at most 15 characters). Returns "" if there is no such
    process."""
    try:
        return (PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def working_in(directory: Path, *, below: bool = False) -> list[int]:
    """Returns the processes whose working directory is `directory`. This finds database servers, because the data
    directory of a server is also its working directory.

    `below`: include subdirectories.
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
    """Returns an identifier of the process id namespace. Two containers may share a directory, but the same process id
    means different processes in them."""
    try:
        return str((PROC / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""


def end(process: ProcessId, gentle: int, patience_s: float, forceful: int = signal.SIGQUIT) -> bool:
    """Ends a process: sends `gentle`, then `forceful` after `patience_s`, then SIGKILL after another 10 s. Returns
    False if the process is still running."""
    for number, wait_s in ((gentle, patience_s), (forceful, 10.0), (signal.SIGKILL, 10.0)):
        process.signal(number)
        if process.wait(wait_s):
            return True
    return False


def end_session(leader: int, patience_s: float, reap: Callable[[], object] = lambda: None) -> None:
    """Ends every process of the session that `leader` created. Also ends descendants of these processes in other
    sessions.

    The leader must be running or a zombie. Otherwise, its id may have been reused. If the leader is a child of this
    process, `reap` must wait for it.
    """
    deadline = time.monotonic() + patience_s
    number: int = signal.SIGTERM
    while left := _of_session(leader):
        for one in left:
            one.signal(number)
        if time.monotonic() >= deadline:
            if number == signal.SIGKILL:
                return  # the remaining processes belong to another user and cannot be ended
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
    """Delays Ctrl-C until the end of the block, so that no interrupt can arrive between starting a process and
    recording it.

    Also delays the signals that `ended_as_by_interrupt` handles. Only the main thread is ever interrupted (Python's
    documentation of `signal`, "Signals and threads").
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
    """Makes SIGTERM and SIGHUP act like Ctrl-C during the block, so that cleanup runs before the process ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:  # nohup(1) ignores SIGHUP
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def woken_by(*numbers: signal.Signals) -> int:
    """Returns a descriptor from which the numbers of these signals can be read when they arrive. The signals have no
    other effect."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return woken
