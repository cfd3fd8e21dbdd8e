"""Samples the stacks of a remote server with the program perf over ssh.

A shell script on the remote machine runs `perf record`, writes its samples to a temporary directory, and removes the
directory. The recording ends when the script's standard input ends or goes silent, so nothing keeps running if
ironbench or the connection ends (`remote.script`).
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import time

from ironbench.errors import FailureError, InputError, written
from ironbench.host.remote import change, link, script
from ironbench.host.remote.link import Link
from ironbench.host.remote.script import SILENT_S, RunningScript
from ironbench.model.profile import (
    CPU,
    ENGINE,
    KERNEL_MARK,
    OUTSIDE,
    SampledProfile,
    SampledStack,
    printable,
    stack_text,
)
from ironbench.plan.profiles import FIELD

PROGRAM = "perf"
_PROGRAMS = {
    PROGRAM: "linux-perf or linux-tools",
    "gzip": "gzip",
    "grep": "grep",
    **dict.fromkeys(("timeout", "mktemp", "date", "cut", "tr", "tail"), "coreutils"),
}
"""Programs that the script uses on the remote machine, and their packages."""
_STACK_BYTES = 8192
"""Bytes of a thread's stack that are copied with each sample for unwinding, because most programs of distributions have
no frame pointers."""
_LARGEST = "512M"
"""Size of the recording at which perf stops."""
_READ_S = 600
"""Timeout for reading the recording."""
_ANSWER_S = 30.0
"""Additional time in which the script reports that reading took too long."""
_SYSCTL = "kernel.perf_event_paranoid"
_PARANOID = f"/proc/sys/{_SYSCTL.replace('.', '/')}"
_RECORD = (
    f"{PROGRAM} record -F %d -e cpu-clock -k CLOCK_REALTIME --call-graph dwarf,{_STACK_BYTES} -N -B "
    f"--max-size={_LARGEST} -o %s -p %s --"
)
"""Samples processes, all their threads, and the processes that they start. `-N -B`: without a cache of programs in the
home directory. Not `-q`, which also hides perf's error messages."""
_FIELDS = "comm,time,ip,sym,dso"


def require(there: Link, server: int, text: str) -> None:
    """Checks that the login may sample the process `server` on that machine. `text`: the requested profile. Raises
    InputError and FailureError."""
    change.require_programs(there, FIELD, _PROGRAMS)
    tried = there.run(f"{_RECORD % (99, '/dev/null', server)} true")
    if tried.status != 0:
        paranoid = there.run(f"cat {_PARANOID}").output.decode("utf-8", "replace").strip()
        cause = f"{there.address.text()} does not permit samples of the server: {tried.complaint or 'no reason'}"
        hint = f"log in as root, or as the user of the server after `sudo sysctl {_SYSCTL}=1` (now {paranoid})"
        raise InputError(written(FIELD, text), cause, hint)


@dataclass(slots=True)
class RemoteProfiler:
    """Samples the stacks of a server on a remote machine from `begin` to `end`."""

    link: Link
    hz: int
    """Samples per second and CPU."""
    servers: Sequence[int]
    """The server's processes. Their children are also sampled."""
    own: frozenset[int] = frozenset()
    """Process id of the ssh session on the remote machine, of which the script and perf are descendants."""
    cpu_s: float = 0.0
    """CPU seconds of `perf record` on the remote machine. Known after `end`."""
    _running: RunningScript | None = None

    def begin(self) -> None:
        """Starts sampling. Raises FailureError."""
        self._running = link.waited(script.begun(self.link, recording(self.hz, self.servers)))
        if self._running.first[:1] != ["done"]:
            why = " ".join(self._running.first[1:]) or "no answer"
            self.abandon()
            raise FailureError(self.link.address.text(), f"the profile could not be started: {why}")
        self.own = frozenset(map(int, self._running.first[1:]))

    def end(self, start_unix_s: float, length_s: float) -> SampledProfile:
        """Stops sampling, and returns the samples of a window. `start_unix_s`: start of the window by the clock of this
        machine. Raises FailureError."""
        running = self._running
        assert running is not None
        try:
            start_s = start_unix_s + _clock_difference_s(self.link)
        except BaseException:
            self.abandon()
            raise
        self._running = None
        found = Stacks(self.hz, start_s, start_s + length_s)
        output = link.waited(running.end(b"stop\n", _READ_S + _ANSWER_S))
        self.cpu_s = read_recording(self.link.address.text(), output, found)
        return found.profile()

    def abandon(self) -> None:
        """Stops sampling without reading the samples. A second call has no effect."""
        running, self._running = self._running, None
        if running is not None:
            link.waited(running.end())


@dataclass(slots=True)
class Stacks:
    """Counts the samples in the output of `perf script`."""

    hz: int
    start_s: float
    end_s: float
    """Window whose samples are counted, in seconds of the remote machine's clock since 1970."""
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of samples by thread name and stack."""
    _lost: int = 0

    def read(self, lines: Iterable[str]) -> None:
        """Reads records: a header line, and for samples one line per frame, the innermost first, and an empty line."""
        thread, frames = "", []
        for line in lines:
            if line.startswith("\t"):
                if thread and not line.strip().startswith(_UNKNOWN_ADDRESS):
                    frames.append(_frame(line))
                continue
            if thread and frames:
                self._counts[thread, stack_text(reversed(frames))] += 1
            thread, frames = "", []
            header = _HEADER.fullmatch(line)
            if header is None or not self.start_s <= float(header[2]) < self.end_s:
                continue
            if header[3] is None:
                thread = printable(header[1])
            else:
                self._lost += int(header[3])
        if thread and frames:
            self._counts[thread, stack_text(reversed(frames))] += 1

    @property
    def samples(self) -> int:
        return self._counts.total()

    def profile(self) -> SampledProfile:
        """Returns the counted samples. They took no CPU time of a sampler on this machine."""
        stacks = tuple(
            SampledStack(CPU, ENGINE, thread, "", stack, "", samples, samples / self.hz)
            for (thread, stack), samples in self._counts.most_common()
        )
        frames = sum(one.samples * len(one.frames) for one in stacks)
        unresolved = sum(one.samples * sum(name.startswith("[") for name in one.frames) for one in stacks)
        return SampledProfile(stacks, 0.0, unresolved / frames if frames else 0.0, self._lost)


_HEADER = re.compile(r"\s*(.*?)\s+(\d+\.\d+):\s*(?:PERF_RECORD_LOST lost (\d+)\s*)?")
"""Header of a sample, or the record of a number of lost samples."""
_FRAME = re.compile(r"\s*[0-9a-f]+ (.*) \((?!deleted\)\))(.*?)(?: \(deleted\))?\)")
_KERNEL_FILES = re.compile(r"\[(?!vdso|heap|stack|unknown|anon).*\]")
_UNKNOWN_ADDRESS = "ffffffffffffffff "
"""Address of a frame with which perf ends some stacks."""
_SIZE_LIMIT = "size limit reached"
"""Part of perf's message about `--max-size`."""
_END = b"ironbench-ended "


def _frame(line: str) -> str:
    """Returns the name of a frame as the core's sampler writes it."""
    found = _FRAME.fullmatch(line)
    if found is None:
        return OUTSIDE
    symbol, file = found[1], found[2]
    if _KERNEL_FILES.fullmatch(file):
        return f"{symbol}{KERNEL_MARK}" if symbol != OUTSIDE else OUTSIDE
    if symbol != OUTSIDE:
        return symbol
    name = file.rpartition("/")[2].strip("[]")
    return f"[{name}]" if name else OUTSIDE


_ENDING = re.compile(r"(\d+) (\d+) (\d+\.\d+)\n.*\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n(.*)\n(.*)\n")


def read_recording(machine: str, output: bytes, found: Stacks) -> float:
    """Reads the output of the script `recording` into `found`. Returns the CPU seconds of `perf record`. Raises
    FailureError with the subject `machine` if the recording does not cover the window, or cannot be read."""
    packed, _, text = output.rpartition(b"\n" + _END)
    ending = _ENDING.fullmatch(text.decode("utf-8", "replace"))
    if ending is None:
        cause = f"the profile was not received: the connection was lost, or reading it took longer than {_READ_S} s"
        raise FailureError(machine, cause)
    read_status, status, ended_s = int(ending[1]), int(ending[2]), float(ending[3])
    minutes, seconds = int(ending[4]) + int(ending[6]), float(ending[5]) + float(ending[7])
    messages, read_messages = ending[8].strip(), ending[9].strip()
    full = _SIZE_LIMIT in messages
    if ended_s < found.end_s or (status != 0 and not full):
        hint = "use a lower frequency, such as `--profile cpu:19`" if full else ""
        raise FailureError(machine, f"perf ended too early: {messages or f'exit status {status}'}", hint)
    if read_status != 0:
        raise FailureError(machine, f"the profile could not be read: {read_messages or f'exit status {read_status}'}")
    found.read(_lines(machine, packed))
    if not found.samples:
        raise FailureError(machine, f"perf recorded no samples in the measured window: {messages or 'no message'}")
    return minutes * 60 + seconds


def _lines(machine: str, packed: bytes) -> Iterator[str]:
    """Unpacks the gzip output of a script. Raises FailureError if it is damaged."""
    _, begun, data = packed.partition(b"\n\x1f\x8b")
    try:
        text = zlib.decompress(b"\x1f\x8b" + data, 31) if begun else b""
    except zlib.error as error:
        raise FailureError(machine, f"the samples arrived damaged: {error}") from None
    yield from text.decode("utf-8", "replace").split("\n")


def _clock_difference_s(there: Link) -> float:
    """Returns how many seconds the remote clock is ahead of this machine's clock. The error is at most half of a round
    trip. Raises FailureError."""
    answers = []
    for _ in range(3):
        before_s = time()
        told = there.run("date +%s.%N").output.decode("ascii", "replace").strip()
        after_s = time()
        if re.fullmatch(r"\d+\.\d+", told):
            answers.append((after_s - before_s, float(told) - (before_s + after_s) / 2))
    if not answers:
        cause = f"cannot read its clock in nanoseconds: `date +%s.%N` printed {told or 'nothing'}"
        raise FailureError(there.address.text(), cause)
    return min(answers)[1]


def recording(hz: int, servers: Sequence[int]) -> str:
    """Returns a shell script that records the stacks of processes and of their children. It prints `done` and the
    process id of its ssh session when the recording runs, or `failed` and perf's last messages.

    After a line of input that is not empty, it ends the recording and prints the samples, packed by gzip, and what
    `_ENDING` reads: the exit status of `perf script`, the exit status and the end of `perf record`, the output of
    `times`, and the last messages of both. At the end of its input, it only removes the recording. It reads the
    recording without watching its input, but `perf script` ends after a timeout, or if its output is closed.
    """
    record = _RECORD % (hz, '"$folder/data"', '"$(processes)"')
    read = f'{PROGRAM} script -i "$folder/data" --no-inline --show-lost-events -F {_FIELDS}'
    parents = "|".join(map(str, servers))
    return f"""export LC_ALL=C; trap '' HUP INT TERM PIPE
folder=$(mktemp -d "${{TMPDIR:-/tmp}}/ironbench-profile-XXXXXX") || {{ echo "failed no temporary directory"; exit 1; }}
trap 'rm -rf "$folder"' EXIT
processes() {{
  grep -lE "^PPid:[[:space:]]*({parents})$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3 | tr '\\n' ','
  echo {",".join(map(str, servers))}; }}
last() {{ grep -vE '^(\\[ perf record: (Woken|Captured).*|[[:space:]]*)$' | tail -n 3 | tr '\\n' ' '; }}
keep_alive() {{ while :; do
  timeout -s KILL {SILENT_S} sh -c 'read -r line || exit 1; [ -z "$line" ] || exit 2' 2>/dev/null
  case $? in 0) ;; 2) return;; *) : >"$folder/abandoned"; return;; esac; done; }}
exec 4>&1
# Messages and statuses are kept in variables, because the recording may have filled the disk.
keep_alive | {{ for attempt in 1 2 3; do
    messages=$({record} sh -c ': >"$0/begun"; echo "done $1"; cat >/dev/null' "$folder" $PPID 2>&1 >&4)
    status=$?; ended=$(date +%s.%N)
    # A process of the list may have ended before perf opened it. The next attempt makes a new list.
    if [ -e "$folder/begun" ]; then break; fi
    case $messages in *"No such process"*) ;; *) break;; esac
  done
  if [ ! -e "$folder/begun" ]; then echo "failed $(echo "$messages" | last)"; exit; fi
  if [ -e "$folder/abandoned" ]; then exit; fi
  echo
  read_status=$({{ {{
    (trap - PIPE; exec timeout -s KILL {_READ_S} {read} </dev/null 2>"$folder/read"); echo $? >&3; }} |
    timeout -s KILL {_READ_S} gzip -1 >&4; }} 3>&1)
  echo; echo "{_END.decode()}$read_status $status $ended"
  times
  echo "$messages" | last; echo; last <"$folder/read"; echo; }}
"""
