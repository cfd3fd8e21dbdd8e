"""How long a guard waits for a server that was asked to stop."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ironbench.host import processes, register, server_guard

SERVER = """
import signal, sys, time
def retry(*_):
    print("could not write: No space left on device", flush=True)
signal.signal(signal.SIGINT, retry)
print("ready", flush=True)
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize("log_bytes", [1 << 10, 1 << 40])
def test_a_last_checkpoint_that_finds_no_room_is_not_waited_for_whatever_was_logged(
    tmp_path: Path, log_bytes: int
) -> None:
    log = tmp_path / "server.log"
    log.write_text("No space left on device: of yesterday\n")
    os.truncate(log, log_bytes)  # sparse: takes no disk space
    with log.open("ab") as file:
        server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=file, stderr=file)
    while log.stat().st_size == log_bytes:
        pass
    try:
        server_guard._end(server, 3600.0, log)
        assert server.returncode == -3  # SIGQUIT: the server recovers at its next start
    finally:
        server.kill()
        server.wait()


def test_how_a_server_ended_is_known_though_its_guard_tells_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    entry = register.new("test", "/nowhere")
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    order = server_guard.GuardOrder(
        str(register.path_of(entry)), command, dict(os.environ), str(tmp_path / "server.log")
    )
    kept = server_guard.ServerGuard(order)
    try:
        os.kill(kept.child.pid, signal.SIGSTOP)
        os.kill(kept.pid or 0, signal.SIGKILL)
        while not kept.ended():
            pass
        assert kept.status is None
        threading.Timer(0.2, os.kill, (kept.child.pid, signal.SIGCONT)).start()
        kept.ended(30.0)
        assert kept.status == -signal.SIGKILL
    finally:
        kept.stop()


def test_a_server_whose_owner_died_gets_the_signal_that_its_entry_names(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    code = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(7)); print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as server:
        server.stdout.readline()
        entry = register.new("test", "/nowhere", stop=signal.SIGTERM)
        entry = register.with_server(entry, processes.identify(server.pid), None)
        assert register.end(register.read(register.path_of(entry)))
    assert server.returncode == 7
