"""Child processes of ironbench and third-party programs: their input, their end, and its reporting."""

import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ironbench.errors import EngineDiedError, FailureError
from ironbench.host import processes, programs
from ironbench.host.child import ORPHANED, Channel, Child
from ironbench.host.programs import Program

MODULE = """
import os, subprocess, sys
from ironbench.errors import FailureError
from ironbench.host.child import answer

def main(parent):
    while (frame := parent.receive()) is not None:
        message, data = frame
        if message == "refuse":
            error = FailureError("statement", "was cancelled", "ask again")
            error.sqlstate, error.number = "57014", 1317
            raise error
        if message == "raise":
            raise ValueError("nonsense")
        if message == "inherit":
            data = subprocess.run(["readlink", "/proc/self/fd/0"], capture_output=True).stdout
        answer(parent, {"said": message}, data[::-1])
"""


@pytest.fixture
def child(tmp_path: Path):
    (tmp_path / "asked.py").write_text(MODULE)
    started = Child("asked", "the child", packages=[str(tmp_path)])
    yield started
    started.stop()


def test_messages_and_bytes_go_both_ways_whatever_their_size(child: Child) -> None:
    data = os.urandom(3_000_000)
    sending = threading.Thread(target=child.send, args=("much", data))
    sending.start()
    assert child.receive() == ({"said": "much"}, data[::-1])
    sending.join()


def test_what_lies_beside_ironbench_takes_no_place_of_the_standard_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ironbench").symlink_to(Path(programs.__file__).parents[1])
    monkeypatch.setattr("ironbench.host.child._PACKAGES", str(tmp_path))
    (tmp_path / "json.py").write_text("raise ImportError('not the standard one')")
    (tmp_path / "asked.py").write_text(MODULE)
    child = Child("asked", "the child")
    assert child.ask("hello") == {"said": "hello"}
    child.stop()


def test_an_error_of_the_child_is_raised_here_as_it_was_there(child: Child) -> None:
    with pytest.raises(FailureError, match="statement: was cancelled") as refused:
        child.ask("refuse")
    assert (refused.value.hint, refused.value.sqlstate, refused.value.number) == ("ask again", "57014", 1317)


def test_a_child_that_breaks_down_leaves_its_last_line(child: Child) -> None:
    assert child.ask("raise") == {}
    died = child.died("before it answered")
    assert isinstance(died, EngineDiedError)
    assert died.cause == "the process exited with code 1 before it answered"
    assert died.hint == "last output: ValueError: nonsense"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_death_by_signal_is_named_and_only_a_kill_may_be_for_want_of_memory(child: Child, number: int) -> None:
    child.ask("ready")
    os.kill(child.pid, number)
    assert child.ask("hello") == {}
    died = child.died()
    assert died.cause == f"the process was killed by {signal.Signals(number).name}"
    assert ("memory" in died.hint) == (number == signal.SIGKILL)


def test_a_child_that_does_not_answer_is_told_from_one_that_died(child: Child) -> None:
    child.ask("ready")
    os.kill(child.pid, signal.SIGSTOP)
    assert child.died(patience_s=0.1).cause == "does not answer"
    child.stop(0.1)
    assert child.process.returncode == -signal.SIGKILL


def test_a_child_ends_with_its_parent_and_its_own_children_do_not_hold_the_line(child: Child) -> None:
    child.send("inherit")
    frame = child.receive()
    assert frame is not None and frame[1][::-1].strip() == b"/dev/null"
    child.stop()
    assert child.process.returncode in (0, ORPHANED)


def test_a_program_that_fails_leaves_its_last_words() -> None:
    assert programs.output(["echo", "one"]) == "one\n"
    with pytest.raises(FailureError, match="sh failed: b / c / d"):
        programs.output(["sh", "-c", "printf 'a\nb\nc\nd\n' >&2; exit 3"])
    with pytest.raises(FailureError, match="cannot be run: No such file") as missing:
        programs.output(["/no/such/program"])
    assert missing.value.hint == "is /no/such/program installed?"
    assert not programs.works("/no/such/program") and not programs.works("false") and programs.works("true")


def test_a_program_that_is_cancelled_ends_with_its_children_and_raises_nothing(tmp_path: Path) -> None:
    program = Program(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait"])
    thread = threading.Thread(target=program.run)
    thread.start()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    program.cancel()
    thread.join()
    pid = int((tmp_path / "pid").read_text())
    while Path(f"/proc/{pid}").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.01)


OWNER = """
import sys
from ironbench.host.programs import Program

Program(["sh", "-c", f"echo $$ > {sys.argv[1]}; exec sleep 600"]).run()
"""


def test_a_program_ends_with_an_ironbench_that_is_killed(tmp_path: Path) -> None:
    if not programs.tied():
        pytest.skip("setpriv(1) of this machine ties no program to another")
    note = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", OWNER, str(note)]) as owner:
        while not note.exists() or not note.read_text().strip():
            assert owner.poll() is None
            time.sleep(0.01)
        owner.kill()
    pid, deadline = int(note.read_text()), time.monotonic() + 10
    while (left := processes.state(pid) not in ("", "Z")) and time.monotonic() < deadline:
        time.sleep(0.01)
    if left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_a_program_that_is_not_there_is_named_with_the_way_out() -> None:
    with pytest.raises(FailureError, match="cannot be run") as refused:
        Program(["no-such-program-of-ours"]).run()
    assert refused.value.hint == "is no-such-program-of-ours installed?"


def test_a_channel_with_a_descriptor_above_1023_can_be_waited_for() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 4096:
        pytest.skip("this process may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(4096, before[0]), before[1]))
    try:
        ours, theirs = socket.socketpair()
        high = socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, 2000))
        ours.close()
        channel = Channel(high)
        assert not channel.waiting(0.0)
        theirs.close()
        assert channel.waiting(None), "the end of the file is something to receive"
        channel.close()
        assert not channel.waiting(0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
