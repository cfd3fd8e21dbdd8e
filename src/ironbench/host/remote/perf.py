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

FIELD = "measure.profile"
PROGRAM = "perf"
_STACK_BYTES = 8192
"""Bytes of a thread's stack that are copied with each sample for unwinding, because most programs of distributions have
no frame pointers."""
_LARGEST = "512M"
"""Size of the recording at which perf stops."""
_READ_S = 600.0
"""Timeout for reading the recording."""
_SYSCTL = "kernel.perf_event_paranoid"
_PARANOID = f"/proc/sys/{_SYSCTL.replace('.', '/')}"
_RECORD = (
    f"{PROGRAM} record -q -F %d -e cpu-clock -k CLOCK_REALTIME --call-graph dwarf,{_STACK_BYTES} -N -B "
    f"--max-size={_LARGEST} -o %s -p %s --"
)
"""Samples processes, all their threads, and the processes that they start. `-N -B`: without a cache of programs in the
home directory."""
_FIELDS = "comm,time,ip,sym,dso"


def require(there: Link, server: int, text: str) -> None:
    """Checks that the login may sample the process `server` on that machine. `text`: the requested profile. Raises
    InputError and FailureError."""
    change.require_programs(there, FIELD, {PROGRAM: "linux-perf or linux-tools", "timeout": "coreutils"})
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
    _running: RunningScript | None = None

    def begin(self) -> None:
        """Starts sampling. Raises FailureError."""
        self._running = link.waited(script.begun(self.link, _script(self.hz, self.servers)))
        if self._running.first[:1] != ["done"]:
            why = " ".join(self._running.first[1:]) or "no answer"
            self.abandon()
            raise FailureError(self.link.address.text(), f"the profile could not be started: {why}")

    def end(self, start_unix_s: float, length_s: float) -> SampledProfile:
        """Stops sampling, and returns the samples of a window. `start_unix_s`: start of the window by the clock of this
        machine. Raises FailureError."""
        running, self._running = self._running, None
        assert running is not None
        start_s = start_unix_s + _clock_difference_s(self.link)
        said = link.waited(running.end(b"stop\n", _READ_S))
        samples, _, last = said.rpartition(b"\n" + _END)
        words = last.split()
        if words[:1] == [b"early"]:
            cause = f"perf stopped before the end of the trial, for example because it had written {_LARGEST}"
            raise FailureError(self.link.address.text(), cause, "use a lower frequency, such as `--profile cpu:19`")
        if not words or words[0] != b"0":
            why = b" ".join(words[2:]).decode("utf-8", "replace") or "the connection was lost"
            raise FailureError(self.link.address.text(), f"the profile could not be read: {why}")
        found = Stacks(self.hz, start_s, start_s + length_s)
        found.read(_lines(samples))
        return found.profile(float(words[1]))

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

    def read(self, lines: Iterable[str]) -> None:
        """Reads records: a header line, and for samples one line per frame, the innermost first, and an empty line."""
        thread, frames = "", []
        for line in lines:
            if line.startswith("\t"):
                if thread and not line.strip().startswith(_NOWHERE):
                    frames.append(_frame(line))
                continue
            if thread and frames:
                self._counts[thread, stack_text(reversed(frames))] += 1
            thread, frames = "", []
            header = _HEADER.fullmatch(line)
            if header is not None and self.start_s <= float(header[2]) < self.end_s:
                thread = printable(header[1])
        if thread and frames:
            self._counts[thread, stack_text(reversed(frames))] += 1

    def profile(self, cpu_s: float) -> SampledProfile:
        """Returns the counted samples. `cpu_s`: CPU seconds of perf."""
        stacks = tuple(
            SampledStack(CPU, ENGINE, thread, "", stack, "", samples, samples / self.hz)
            for (thread, stack), samples in self._counts.most_common()
        )
        frames = sum(one.samples * len(one.frames) for one in stacks)
        unresolved = sum(one.samples * sum(name.startswith("[") for name in one.frames) for one in stacks)
        return SampledProfile(stacks, cpu_s, unresolved / frames if frames else 0.0, 0)


_HEADER = re.compile(r"\s*(.*?)\s+(\d+\.\d+):\s*")
_FRAME = re.compile(r"\s*[0-9a-f]+ (.*) \((.*)\)")
_KERNEL_FILES = re.compile(r"\[(?!vdso|heap|stack|unknown|anon).*\]")
_NOWHERE = "ffffffffffffffff "
"""Address of a frame with which perf ends some stacks."""
_END = b"ironbench-ended "


def _frame(line: str) -> str:
    """Returns the name of a frame as the core's sampler writes it."""
    found = _FRAME.match(line)
    if found is None:
        return OUTSIDE
    symbol, file = found[1], found[2]
    if _KERNEL_FILES.fullmatch(file):
        return f"{symbol}{KERNEL_MARK}" if symbol != OUTSIDE else OUTSIDE
    if symbol != OUTSIDE:
        return symbol
    name = file.rpartition("/")[2].strip("[]")
    return f"[{name}]" if name else OUTSIDE


def _lines(packed: bytes) -> Iterator[str]:
    """Unpacks the gzip output of a script. Raises FailureError if it is damaged."""
    _, begun, data = packed.partition(b"\n\x1f\x8b")
    try:
        text = zlib.decompress(b"\x1f\x8b" + data, 31) if begun else b""
    except zlib.error as error:
        raise FailureError("profile", f"the samples arrived damaged: {error}") from None
    yield from text.decode("utf-8", "replace").split("\n")


def _clock_difference_s(there: Link) -> float:
    """Returns how many seconds the remote clock is ahead of this machine's clock. The error is at most half of a round
    trip."""
    answers = []
    for _ in range(3):
        before_s = time()
        told = there.run("date +%s.%N").output.decode("ascii", "replace").strip()
        after_s = time()
        if re.fullmatch(r"\d+\.\d+", told):
            answers.append((after_s - before_s, float(told) - (before_s + after_s) / 2))
    return min(answers)[1] if answers else 0.0


def _script(hz: int, servers: Sequence[int]) -> str:
    """Returns a shell script that records the stacks of processes and of their children. It prints `done` when the
    recording runs. After a line of input that is not empty, it ends the recording and prints the samples, packed by
    gzip, and a last line with the exit status and the CPU seconds of perf. At the end of its input, it only removes
    the recording.
    """
    record = _RECORD % (hz, '"$folder/data"', '"$processes"')
    parents = "|".join(map(str, servers))
    return f"""export LC_ALL=C; trap '' HUP INT TERM PIPE
folder=$(mktemp -d "${{TMPDIR:-/tmp}}/ironbench-profile-XXXXXX") || {{ echo "failed no temporary directory"; exit 1; }}
trap 'rm -rf "$folder"' EXIT
processes=$(grep -lE "^PPid:[[:space:]]*({parents})$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3 | tr '\\n' ',')
processes=${{processes}}{",".join(map(str, servers))}
beats() {{ while :; do
  timeout -s KILL {SILENT_S} sh -c 'read -r beat || exit 1; [ -z "$beat" ] || exit 2' 2>/dev/null
  case $? in 0) ;; 2) touch "$folder/stopped"; return;; *) touch "$folder/abandoned"; return;; esac; done; }}
beats | {{ {record} sh -c 'echo done; cat >/dev/null' 2>"$folder/said"
  echo $? >"$folder/status"; [ -e "$folder/stopped" ] || touch "$folder/early"; times >"$folder/times"; }}
status=$(cat "$folder/status"); [ ! -e "$folder/early" ] || status=early
if [ "$status" != 0 ]; then echo "failed $(tail -n 3 "$folder/said" | tr '\\n' ' ')"; fi
[ ! -e "$folder/abandoned" ] || exit 0
echo; {PROGRAM} script -i "$folder/data" --no-inline -F {_FIELDS} 2>"$folder/said" | gzip -1
cpu=$(tail -n 1 "$folder/times" | tr 'ms' '  ' | awk '{{ print $1 * 60 + $2 + $3 * 60 + $4 }}')
echo; echo "{_END.decode()}$status $cpu $(tail -n 3 "$folder/said" | tr '\\n' ' ')"
"""
