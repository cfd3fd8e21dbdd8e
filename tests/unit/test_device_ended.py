"""What happens to the trace of a device that was ended by another process than its owner."""

import signal
import struct
import subprocess
from pathlib import Path

import pytest
from patience import eventually

from ironbench.devices import mounting
from ironbench.devices.mounting import Mounted
from ironbench.devices.recording import raw
from ironbench.devices.trace import read
from ironbench.errors import FailureError
from ironbench.host import processes, register
from ironbench.host.child import Child
from ironbench.model.system import Device, Partition

ENDED = """
from ironbench.host.child import answer

def main(parent):
    answer(parent, WORDS)
"""
"""A device process that was ended by a signal: it sends its final report without a request."""
ROW = struct.pack("<3QI4B", 5, 4096, 9, 512, 1, 0, 0, 0)


def ended(folder: Path, words: str) -> tuple[Mounted, Path]:
    """Returns a device whose process has sent its final report and is gone, and the path for its trace."""
    (folder / "ended.py").write_text(ENDED.replace("WORDS", words))
    trace = folder / "t.parquet"
    raw(trace).write_bytes(ROW * 3)
    one = Mounted.__new__(Mounted)
    one.device = Device("free", (Partition("data", 1 << 30, "/not/there"),))
    one._trace, one._trials, one._stopped = trace, [], False
    one._folder = folder / "gone already"
    one._child = Child("ended", "emulated device free", packages=[str(folder)])
    one._child.process.wait(30)
    return one, trace


def test_the_trace_is_written_although_another_command_ended_the_device(tmp_path: Path) -> None:
    one, trace = ended(tmp_path, '{"stopped": [], "untraced": ""}')
    one.stop()
    assert list(read(trace).offset) == [4096] * 3 and not raw(trace).exists()


def test_a_trace_that_lacks_ios_is_not_kept_then_either_and_what_is_left_is_named(tmp_path: Path) -> None:
    one, trace = ended(tmp_path, '{"stopped": [], "untraced": "No space left on device"}')
    with pytest.raises(FailureError, match="No space left"):
        one.stop()
    assert not trace.exists() and not raw(trace).exists()


def test_of_a_device_that_died_without_a_word_no_part_of_a_trace_is_kept(tmp_path: Path) -> None:
    one, trace = ended(tmp_path, "{}")
    one.stop()
    assert not trace.exists() and not raw(trace).exists()


def test_the_server_on_a_device_that_has_ended_is_ended_and_none_that_stands_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    servers = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    try:
        for data, server in zip(("/on/it", "/beside"), servers, strict=True):
            register.with_server(register.new("any", data), processes.identify(server.pid), None)
        mounting._end_servers("/on/it")
        assert servers[0].wait(10) == -signal.SIGQUIT
        assert servers[1].poll() is None
    finally:
        for server in servers:
            server.kill()
            server.wait()


def test_processes_that_signals_had_stopped_go_on_when_their_server_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    data = tmp_path / "data" / "cluster"
    data.mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"], cwd=data) as left:
        try:
            left.send_signal(signal.SIGSTOP)
            assert eventually(lambda: processes.state(left.pid) == "T")
            entry = register.new("any", str(data.parent))
            assert register.end(entry)
            assert processes.state(left.pid) in ("R", "S")
        finally:
            left.kill()
