"""The output of `perf script` on a server's machine becomes stacks like those of the core's sampler."""

from __future__ import annotations

import os
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import eventually

from ironbench.errors import FailureError
from ironbench.host.remote.address import parse
from ironbench.host.remote.link import CommandResult, Link
from ironbench.host.remote.perf import RemoteProfiler, Stacks, read_recording, recording
from ironbench.host.remote.script import RunningScript
from ironbench.model.profile import CPU, ENGINE

OUTPUT = """
postgres 1000.500000: \n\
\tffffffff81a3f4aa read ([kernel.kallsyms])
\tffffffffc03f4aaa ext4_read ([ext4])
\t          a3f4aa pgwin(int, char const*) (/usr/lib/postgresql/15/bin/postgres)
\t          a3f4ab main (/usr/lib/postgresql/15/bin/postgres)
\tffffffffffffffff [unknown] ([unknown])

postgres 1000.550000: PERF_RECORD_LOST lost 20
postgres 1000.560000: PERF_RECORD_LOST lost 4
io worker 1 1000.600000: \n\
\t           1234a [unknown] (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t            2222 [unknown] ([unknown])

postgres 1000.700000: \n\
\tffffffff81a3f4aa read ([kernel.kallsyms])
\tffffffffc03f4aaa ext4_read ([ext4])
\t          a3f4aa pgwin(int, char const*) (/usr/lib/postgresql/15/bin/postgres)
\t          a3f4ab main (/usr/lib/postgresql/15/bin/postgres)

postgres 1002.000000: PERF_RECORD_LOST lost 7
postgres 1002.000000: \n\
\t          a3f4ab main (/usr/lib/postgresql/15/bin/postgres)
"""


def test_samples_of_the_window_are_counted_by_thread_and_stack() -> None:
    counted = Stacks(100, 1000.0, 1002.0)
    counted.read(OUTPUT.split("\n"))
    found = counted.profile()
    first, second = found.stacks
    assert (first.kind, first.role, first.thread, first.samples, first.seconds) == (CPU, ENGINE, "postgres", 2, 0.02)
    assert first.stack == "main;pgwin(int, char const*);ext4_read_[k];read_[k]"
    assert (second.thread, second.stack) == ("io worker 1", "[unknown];[libc.so.6]")
    assert (found.cpu_s, found.lost) == (0.0, 24)
    assert found.unresolved_share == pytest.approx(2 / 10)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("\t 1a exec_simple (/usr/bin/postgres (deleted))", "exec_simple"),
        ("\t 1a pgwin(int, char const*) (/usr/bin/postgres (deleted))", "pgwin(int, char const*)"),
        ("\t 1a [unknown] (/usr/bin/postgres (deleted))", "[postgres]"),
        ("\t 1a f(int) (/usr/bin/postgres)", "f(int)"),
    ],
)
def test_the_name_of_a_frame_ends_before_its_file(line: str, name: str) -> None:
    counted = Stacks(99, 0.0, 2.0)
    counted.read(["a 1.0: ", line, ""])
    assert [one.stack for one in counted.profile().stacks] == [name]


def packed(text: str, ending: str) -> bytes:
    """Returns the output of the script after the recording."""
    packer = zlib.compressobj(wbits=31)
    samples = packer.compress(text.encode()) + packer.flush()
    return b"\n" + samples + b"\nironbench-ended " + ending.encode()


TIMES = "0m0.000000s 0m0.010000s\n1m1.500000s 0m0.250000s\n"
FULL = "failed to write perf data, error: No space left on device"


def test_a_recording_is_read_with_the_cpu_time_of_perf() -> None:
    counted = Stacks(100, 1000.0, 1002.0)
    assert read_recording("db1", packed(OUTPUT, f"0 0 1002.5\n{TIMES}\n\n"), counted) == 61.75
    assert counted.samples == 3


def test_a_recording_that_reached_its_size_limit_after_the_window_is_used() -> None:
    counted = Stacks(100, 1000.0, 1002.0)
    ending = f"0 143 1002.5\n{TIMES}[ perf record: perf size limit reached (512 MB), stopping session ]\n\n"
    read_recording("db1", packed(OUTPUT, ending), counted)
    assert counted.samples == 3


@pytest.mark.parametrize(
    ("text", "ending", "cause", "hint"),
    [
        (OUTPUT, f"0 143 1001.5\n{TIMES}[ perf record: perf size limit reached ]\n\n", "size limit", "lower frequency"),
        (OUTPUT, f"0 255 1002.5\n{TIMES}{FULL}\nread this\n", "No space left on device", ""),
        (OUTPUT, f"0 0 1001.5\n{TIMES}\n\n", "too early", ""),
        (OUTPUT, f"137 0 1002.5\n{TIMES}\n\n", "could not be read", ""),
        (OUTPUT, f"255 0 1002.5\n{TIMES}\nno symbols\n", "no symbols", ""),
        ("", f"0 0 1002.5\n{TIMES}\n\n", "no samples", ""),
        (OUTPUT, "0\n", "not received", ""),
        (OUTPUT, "", "not received", ""),
        (OUTPUT, f" 0 1002.5\n{TIMES}\n\n", "not received", ""),
    ],
)
def test_a_recording_that_is_incomplete_is_refused(text: str, ending: str, cause: str, hint: str) -> None:
    with pytest.raises(FailureError) as refused:
        read_recording("db1", packed(text, ending), Stacks(100, 1000.0, 1002.0))
    assert refused.value.subject == "db1" and cause in refused.value.cause
    assert hint in refused.value.hint and bool(hint) == bool(refused.value.hint)


def test_without_a_clock_in_nanoseconds_the_recording_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    class Running(RunningScript):
        def __init__(self) -> None:
            self.ended: list[bytes] = []

        async def end(self, last: bytes = b"", limit_s: float = 0.0) -> bytes:
            self.ended.append(last)
            return b""

    def run(_link: Link, *_of: Any, **_options: Any) -> CommandResult:
        return CommandResult(0, b"1796132687.%N\n", "")

    monkeypatch.setattr(Link, "run", run)
    running = Running()
    profiler = RemoteProfiler(Link(parse("ssh://db1")), 99, (1,), _running=running)
    with pytest.raises(FailureError):
        profiler.end(1000.0, 1.0)
    profiler.abandon()
    assert running.ended == [b""]


RECORD = 'while [ "$1" != -- ]; do shift; done; shift; "$@"'
"""A program perf that only runs the given command."""
FAIL = 'echo "Couldn\'t create thread/CPU maps: No such process" >&2; exit 244'

Begin = Callable[..., Any]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """Runs the script with another program perf, which runs one shell script for `perf record` and one for `perf
    script`. All files are in `tmp_path`."""

    @contextmanager
    def begun(record: str = RECORD, script: str = "") -> Iterator[subprocess.Popen[bytes]]:
        programs, temporary = tmp_path / "programs", tmp_path / "temporary"
        programs.mkdir()
        temporary.mkdir()
        perf = programs / "perf"
        perf.write_text(f"#!/bin/sh\necho $$ $1 >>{tmp_path}/calls\ncase $1 in record) {record};; *) {script};; esac\n")
        perf.chmod(0o755)
        environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(temporary)}
        process = subprocess.Popen(
            ("sh", "-c", recording(99, (os.getpid(),))),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        try:
            yield process
        finally:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.stdout.close()
            process.wait(20)
        assert not list(temporary.iterdir())

    return begun


def test_a_recording_that_cannot_start_says_why_at_once(begin: Begin, tmp_path: Path) -> None:
    started = time.monotonic()
    with begin("echo '[ perf record: Woken up 1 times ]' >&2; echo not permitted >&2; exit 255") as script:
        assert script.stdout.readline() == b"failed not permitted \n"
    assert time.monotonic() - started < 10.0
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def test_processes_that_end_before_the_recording_are_listed_again(begin: Begin, tmp_path: Path) -> None:
    with begin(f"[ $(wc -l <{tmp_path}/calls) = 3 ] || {{ {FAIL}; }}; {RECORD}") as script:
        assert script.stdout.readline() == b"done %d\n" % os.getpid()
        (folder,) = (tmp_path / "temporary").iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_third_list_is_the_last(begin: Begin, tmp_path: Path) -> None:
    with begin(FAIL) as script:
        assert script.stdout.readline().startswith(b"failed Couldn't create")
    assert len((tmp_path / "calls").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("record", "script", "cause"),
    [
        (RECORD, "echo no symbols >&2; exit 9", "could not be read: no symbols"),
        (f"{RECORD}; echo '{FULL}' >&2; exit 255", "echo other >&2; exit 9", f"too early: {FULL}"),
        (RECORD, "exit 0", "no samples"),
    ],
)
def test_what_failed_is_told_after_the_recording(begin: Begin, record: str, script: str, cause: str) -> None:
    with begin(record, script) as running:
        assert running.stdout.readline().startswith(b"done")
        output, _ = running.communicate(b"\n\nstop\n", timeout=20)
    with pytest.raises(FailureError, match=cause):
        read_recording("db1", output, Stacks(99, time.time() - 1000.0, time.time() - 900.0))


def test_reading_ends_with_the_connection(begin: Begin, tmp_path: Path) -> None:
    with begin(RECORD, "exec cat /dev/urandom") as running:
        assert running.stdout.readline().startswith(b"done")
        running.stdin.write(b"stop\n")
        running.stdin.close()
        assert len(running.stdout.read(100_000)) == 100_000
        reader = int((tmp_path / "calls").read_text().splitlines()[-1].split()[0])
        assert Path(f"/proc/{reader}").exists()
    assert eventually(lambda: not Path(f"/proc/{reader}").exists())
