"""A machine with so many processes that an answer is longer than an ssh window."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from ssh_in_process import SshInProcess

from ironbench.host.remote.watch import Watch
from ironbench.model.observation import Source

_LINE = b"/proc/stat:cpu " + b"7 " * 500 + b"\n"
_LINES = 3000


async def _shell(process: Any) -> None:
    process.stdout.write(b"watching 1 2\n")
    async for _ in process.stdin:
        process.stdout.write(b"frame 5.00\n" + _LINE * _LINES + b"\nuntil 5.01\nend\n")
    process.exit(0)


def test_an_answer_longer_than_a_window_of_ssh_is_no_lost_link() -> None:
    assert len(_LINE) * _LINES > 2 << 20
    with closing(SshInProcess(_shell)) as machine:
        watch = Watch(machine, (Source("cpu.stat", "file", "/proc/stat"),))
        start_s = time.monotonic()
        watch.begin()
        while not (watch._frames or machine.sessions > 1) and time.monotonic() < start_s + 20.0:
            time.sleep(0.02)
        seen = watch.end(start_s)
    assert seen.samples["cpu.stat"] and not seen.lost
    assert machine.sessions == 1
    _, first = seen.samples["cpu.stat"][0]
    assert first.count(b"\n") == _LINES
