"""The profiler of the core on real processes: stacks, roles, waits, windows, and processes that end."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from patience import eventually

from ironbench import _core
from ironbench.errors import InputError

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or _core.available(["cpu"]) != [],
    reason="needs a C compiler and the right to sample all processes",
)
waits = pytest.mark.skipif(
    _core.available(["wait"]) != [], reason="needs tracefs (mount -t tracefs tracefs /sys/kernel/tracing)"
)

HZ = 199

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;

void burn_callee(long rounds) { for (long i = 0; i < rounds; i++) sink += i; }
void burn_caller(long rounds) { burn_callee(rounds); sink++; }
void burn_forever(void) { for (;;) burn_caller(1000000); }

void timer_callee(void) { usleep(20000); sink++; }
void timer_caller(void) { for (;;) { timer_callee(); sink++; } }

void deep(int depth) { if (depth == 0) burn_forever(); deep(depth - 1); sink++; }

void child_work(void) { burn_caller(300000); _exit(0); }
void many_children(void) { for (;;) { if (fork() == 0) child_work(); wait(NULL); } }

void *thread_work(void *unused) { prctl(PR_SET_NAME, "named thread"); burn_forever(); return unused; }

static int channel[2];
void receive_callee(void) { char byte; while (read(channel[0], &byte, 1) == 1) sink++; }
void receive_caller(void) { receive_callee(); sink++; }
void send_callee(void) { for (;;) { usleep(5000); if (write(channel[1], "x", 1) != 1) _exit(1); } }
void send_caller(void) { send_callee(); sink++; }

static int answer[2];
void sleep_shortly(void) { usleep(200); sink++; }
void play(int from, int to) {
    char byte = 'x';
    for (long i = 0;; i++) {
        if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1) _exit(1);
        if (i % 16 == 0) sleep_shortly();
    }
}

int main(int count, char **words) {
    (void) count;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strcmp(words[1], "burn") == 0) burn_forever();
    if (strcmp(words[1], "timer") == 0) timer_caller();
    if (strcmp(words[1], "deep") == 0) deep(300);
    if (strcmp(words[1], "children") == 0) many_children();
    if (strcmp(words[1], "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, thread_work, NULL);
        pause();
    }
    if (strcmp(words[1], "pair") == 0) {
        if (pipe(channel) != 0) return 1;
        if (fork() == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL); receive_caller(); }
        send_caller();
    }
    if (strcmp(words[1], "players") == 0) {
        if (pipe(channel) != 0 || pipe(answer) != 0) return 1;
        if (fork() == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL); play(channel[0], answer[1]); }
        play(answer[0], channel[1]);
    }
    return 1;
}
"""


class Line(NamedTuple):
    kind: str
    role: str
    thread: str
    reason: str
    stack: str
    waker: str
    samples: int
    seconds: float


def lines(profile: _core.Profile) -> list[Line]:
    columns = (getattr(profile, name) for name in Line._fields)
    return [Line(*values) for values in zip(*columns, strict=True)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiled")
    source, built = folder / "program.c", folder / "program"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-O0", "-fno-omit-frame-pointer", "-pthread", "-o", built, source], check=True)
    return built


@contextmanager
def running(program: Path, mode: str) -> Iterator[int]:
    with subprocess.Popen([program, mode]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def profiled(kinds: Sequence[str], roots: Sequence[int], seconds: float = 0.6) -> _core.Profile:
    """Profiles all processes that are already running, for some seconds."""
    profiler = _core.Profiler(kinds, HZ, roots)
    profiler.start()
    start = time.perf_counter_ns()
    time.sleep(seconds)
    windows = [(start, time.perf_counter_ns())]
    return profiler.stop(windows)


def cpu_s(pid: int) -> float:
    """Returns the CPU time of a process in seconds, including its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def perf_events() -> int:
    # The descriptor of the listing itself is already closed.
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum("perf_event" in str(link.readlink()) for link in links)


def test_a_cpu_stack_leads_from_main_to_the_busy_function(program: Path) -> None:
    with running(program, "burn") as pid:
        found = lines(profiled(["cpu"], [pid]))
    busy = next(line for line in found if line.role == "engine")
    assert (busy.kind, busy.thread, busy.reason, busy.waker) == ("cpu", "program", "", "")
    assert "main;burn_forever;burn_caller;burn_callee" in busy.stack


def test_a_program_without_frame_pointers_has_complete_stacks(program: Path) -> None:
    bare = program.parent / "bare"
    options = ["-O1", "-fomit-frame-pointer", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread"]
    subprocess.run(["cc", *options, "-o", bare, program.with_suffix(".c")], check=True)
    with running(bare, "burn") as pid:
        found = lines(profiled(["cpu"], [pid]))
    busy = next(line for line in found if line.role == "engine")
    assert "main;burn_forever;burn_caller;burn_callee" in busy.stack


@pytest.mark.alone
def test_samples_divided_by_the_rate_are_the_cpu_time(program: Path) -> None:
    with running(program, "burn") as pid:
        profiler = _core.Profiler(["cpu"], HZ, [pid])
        profiler.start()
        before = cpu_s(pid)
        time.sleep(1)
        after = cpu_s(pid)
        profile = profiler.stop([])
    engine = [line for line in lines(profile) if line.role == "engine"]
    assert sum(line.samples for line in engine) / HZ == pytest.approx(sum(line.seconds for line in engine))
    assert sum(line.seconds for line in engine) == pytest.approx(after - before, rel=0.25, abs=0.06)
    assert profile.lost == profile.truncated == 0
    assert 0 < profile.sampler_cpu_s < 0.5


def test_children_that_are_not_the_engines_are_the_client_and_others_are_only_counted(program: Path) -> None:
    script = program.parent / "orphan.sh"
    script.write_text("while :; do :; done\n")
    shell = f"sh '{script}' >/dev/null 2>&1 & echo $!"
    other = int(subprocess.run(["sh", "-c", shell], stdout=subprocess.PIPE, text=True, check=True).stdout)
    try:
        with running(program, "burn") as engine, running(program, "thread"):
            profile = profiled(["cpu"], [engine])
    finally:
        os.kill(other, 9)
    by_thread = {line.thread: line.role for line in lines(profile)}
    assert by_thread["program"] == "engine"
    assert by_thread["named thread"] == "client"
    assert "sh" not in by_thread
    assert profile.others > 0


def test_only_samples_in_the_windows_count(program: Path) -> None:
    with running(program, "burn") as pid:
        profiler = _core.Profiler(["cpu"], HZ, [pid])
        profiler.start()
        time.sleep(0.3)
        later = time.perf_counter_ns() + 10**10
        profile = profiler.stop([(0, 1), (later, later + 10**9)])
    assert lines(profile) == []


@waits
def test_a_sleeping_thread_is_blocked_at_its_stack(program: Path) -> None:
    with running(program, "timer") as pid:
        found = [line for line in lines(profiled(["wait"], [pid], 1)) if line.role == "engine"]
    blocked = [line for line in found if line.reason == "blocked"]
    assert {line.kind for line in found} == {"wait"}
    assert 0.5 < sum(line.seconds for line in found) < 1.05
    assert all("main;timer_caller" in line.stack and line.stack.endswith("_[k]") for line in blocked)
    # 20 ms each, and the waits that the edges of the window cut.
    assert 10 < sum(line.samples for line in blocked) <= 53


@waits
def test_a_blocked_thread_has_the_stack_that_woke_it(program: Path) -> None:
    with running(program, "pair") as pid:
        found = lines(profiled(["wait"], [pid]))
    received = [line for line in found if "receive_caller" in line.stack and line.reason == "blocked"]
    assert any("main;send_caller" in line.waker for line in received)


@pytest.mark.alone
@waits
def test_waits_add_up_to_the_time_even_if_most_switches_are_not_recorded(program: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with running(program, "players") as pid:
        children = Path(f"/proc/{pid}/task/{pid}/children")
        assert eventually(lambda: bool(children.read_text().split()))
        players = [pid, int(children.read_text())]
        for player in players:
            os.sched_setaffinity(player, {cpu})
        before, start = cpu_s(players[0]) + cpu_s(players[1]), time.monotonic()
        found = [line for line in lines(profiled(["wait"], [pid], 3)) if line.role == "engine"]
        elapsed, used = time.monotonic() - start, cpu_s(players[0]) + cpu_s(players[1]) - before
    waited = sum(line.seconds for line in found)
    # The windows in which switches are recorded are a sample of the time.
    assert waited == pytest.approx(3 * (2 - used / elapsed), rel=0.15)
    short = [line for line in found if "play;sleep_shortly" in line.stack and line.reason == "blocked"]
    assert short
    assert all("play" in line.stack for line in found if line.seconds > 0.01 * waited)


@waits
def test_a_preempted_thread_waits_for_a_cpu(program: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with running(program, "burn") as first, running(program, "burn") as second:
        for pid in (first, second):
            os.sched_setaffinity(pid, {cpu})
        found = [line for line in lines(profiled(["wait"], [first, second], 1)) if line.role == "engine"]
    assert {line.reason for line in found} == {"cpu-queue"}
    assert sum(line.seconds for line in found) > 0.7


def test_short_processes_are_resolved_after_they_have_ended(program: Path) -> None:
    with running(program, "children") as pid:
        profiler = _core.Profiler(["cpu"], HZ, [pid])
        profiler.start()
        time.sleep(1)
    profile = profiler.stop([])
    engine = [line for line in lines(profile) if line.role == "engine"]
    assert any("many_children;child_work;burn_caller;burn_callee" in line.stack for line in engine)
    assert profile.lost == 0


def test_a_program_without_symbols_has_its_name_in_brackets(program: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    shutil.copy(program, stripped)
    subprocess.run(["strip", "--strip-all", stripped], check=True)
    with running(stripped, "burn") as pid:
        profile = profiled(["cpu"], [pid])
    engine = [line for line in lines(profile) if line.role == "engine"]
    assert any("[stripped];[stripped]" in line.stack for line in engine)
    assert profile.unresolved_share > 0.2


def test_a_stack_that_is_too_deep_is_counted_and_has_no_root(program: Path) -> None:
    with running(program, "deep") as pid:
        profile = profiled(["cpu"], [pid])
    deepest = next(line for line in lines(profile) if line.role == "engine")
    assert deepest.stack.startswith("[truncated];deep;deep;")
    assert deepest.stack.count(";") == 127
    assert profile.truncated > 0


def test_a_process_that_starts_another_program_has_its_symbols(program: Path) -> None:
    profiler = _core.Profiler(["cpu"], HZ, [])
    profiler.start()
    with subprocess.Popen(["sh", "-c", f"sleep 0.1; exec '{program}' burn"]) as process:
        time.sleep(0.8)
        process.kill()
    client = [line for line in lines(profiler.stop([])) if line.thread == "program"]
    assert any("main;burn_forever" in line.stack and line.role == "client" for line in client)


def test_no_event_remains_after_the_end_or_without_one(program: Path) -> None:
    before = perf_events()
    profiler = _core.Profiler(["cpu"], HZ, [])
    profiler.start()
    assert perf_events() > before
    del profiler
    assert perf_events() == before
    profiled(["cpu"], [], 0.05)
    assert perf_events() == before


def test_a_program_that_this_process_starts_does_not_inherit_the_events() -> None:
    profiler = _core.Profiler(["cpu"], HZ, [])
    profiler.start()
    listed = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True, close_fds=False)
    profiler.stop([])
    assert "perf_event" not in listed.stdout


def test_an_ordinary_user_samples_only_own_processes() -> None:
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    if os.geteuid() != 0 or paranoid not in ("1", "2"):
        pytest.skip("needs root, and a kernel that lets users sample their own processes")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            codes = [code for kinds in (["cpu"], ["wait"]) for code, _ in _core.available(kinds)]
            profiler = _core.Profiler(["cpu"], HZ, [])
            profiler.start()
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                pass
            roles = {line.role for line in lines(profiler.stop([]))}
            os.write(write, " ".join([*codes, *roles]).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    answer = os.read(read, 1000)
    os.close(read)
    os.close(write)
    assert answer == b"only-own paranoid client"


def test_wrong_kinds_rates_and_orders_are_refused() -> None:
    with pytest.raises(InputError):
        _core.Profiler(["disk"], HZ, [])
    with pytest.raises(InputError):
        _core.available(["disk"])
    with pytest.raises(InputError):
        _core.Profiler([], HZ, [])
    for hz in (0, 1000):
        with pytest.raises(InputError):
            _core.Profiler(["cpu"], hz, [])
    profiler = _core.Profiler(["cpu"], HZ, [])
    with pytest.raises(InputError):
        profiler.stop([])
    profiler.start()
    with pytest.raises(InputError):
        profiler.start()
