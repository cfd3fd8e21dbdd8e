"""A user whose ~/.bashrc prints a greeting in every ssh session."""

from __future__ import annotations

import subprocess
import time
from contextlib import closing
from typing import Any

from ssh_in_process import SshInProcess

from ironbench.host.remote.change import Pin, Rights
from ironbench.host.remote.watch import Watch
from ironbench.model.observation import Source

GREETING = b"Welcome to db1\n\n"


async def _once(process: Any) -> None:
    """Runs a command, as sshd does."""
    done = subprocess.run(["sh", "-c", process.command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    process.stdout.write(GREETING + done.stdout)
    process.stderr.write(done.stderr)
    process.exit(done.returncode)


async def _watching(process: Any) -> None:
    process.stdout.write(GREETING + b"watching 1 2\n")
    async for _ in process.stdin:
        process.stdout.write(b"frame 5.00\n/proc/stat:cpu 1 2\n\nuntil 5.01\nend\n")
    process.exit(0)


async def _holding(process: Any) -> None:
    process.stdout.write(GREETING + b"done 0-1\n")
    async for _ in process.stdin:
        pass
    process.stdout.write(b"undone 0\n")
    process.exit(0)


def test_an_answer_is_what_the_command_wrote() -> None:
    with closing(SshInProcess(_once)) as machine:
        answer = machine.run("echo loaded; echo oh >&2; exit 3")
    assert (answer.status, answer.output, answer.complaint) == (3, b"loaded\n", "oh")


def test_a_machine_is_watched_behind_its_greeting() -> None:
    with closing(SshInProcess(_watching)) as machine:
        watch = Watch(machine, (Source("cpu.stat", "file", "/proc/stat"),))
        start_s = time.monotonic()
        watch.begin()
        while not (watch._frames or machine.sessions > 1) and time.monotonic() < start_s + 20.0:
            time.sleep(0.02)
        seen = watch.end(start_s)
    assert seen.samples["cpu.stat"][0][1] == b"cpu 1 2\n"
    assert machine.sessions == 1


def test_a_server_is_held_behind_its_machines_greeting() -> None:
    with closing(SshInProcess(_holding)) as machine:
        pin = Pin(machine, Rights(), 77, "0")
        pin.begin()
        assert pin.before == "0-1"
        assert pin.end() == ""
