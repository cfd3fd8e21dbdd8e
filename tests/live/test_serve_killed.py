"""A server and the lab that it started are killed during a trial: the next server finds both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from patience import eventually

from ironbench.host import processes
from ironbench.host.processes import ProcessId
from ironbench.records.labs import LabDirectory
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import DONE, QueueEntry
from ironbench.trial.drive import live

pytestmark = [pytest.mark.live, pytest.mark.long]
TOKEN = "a-token-of-sixteen-or-more"
LAB = """question = "Do two clients get more done than one?"
[workload]
name = "select-only"
[system]
engine = "null"
[load]
duration = "0.5s"
warmup = "0s"
[vary]
clients = [1, 2]
[measure]
repeats = 6
quiet = "0s"
"""


@contextmanager
def serving(place: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yields the process and its address."""
    words = [
        sys.executable,
        "-m",
        "ironbench.start",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--results",
        str(place / "results"),
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(place / "cache"), "XDG_RUNTIME_DIR": str(place)}
    environment["IRONBENCH_TOKEN"] = TOKEN
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield server, server.stdout.readline().partition("/?")[0]
        finally:
            server.kill()


def post(address: str, path: str, **fields: str) -> int:
    request = urllib.request.Request(address + path, urlencode(fields).encode(), {"authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        status: int = answer.status
        return status


def only(queue: Queue) -> QueueEntry:
    (entry,) = queue.entries()
    return entry


def measured_trials(queue: Queue) -> int:
    trials = queue.results / "labs" / only(queue).lab / "trials"
    return sum(1 for _ in trials.glob("[!.]*"))


@pytest.mark.parametrize("victims", ["server", "lab", "both"])
def test_a_lab_goes_on_to_its_end_and_the_queue_is_intact(place: Path, victims: str) -> None:
    queue = Queue(place / "results")
    with serving(place) as (server, address):
        assert post(address, "/queue", name="two", text=LAB) == 200
        assert eventually(lambda: measured_trials(queue) >= 2)
        entry = only(queue)
        shell = ProcessId(entry.pid, entry.born)
        assert shell.alive()
        below = processes.below(entry.pid)
        if victims != "lab":
            server.kill()
            server.wait()
        if victims != "server":
            for one in (shell, *below):
                one.signal(signal.SIGKILL)
        with serving(place) if victims != "lab" else _same(server, address):
            assert eventually(lambda: only(queue).state == DONE, 60), queue.log(only(queue))
    ended = only(queue)
    assert ended.tries == (1 if victims == "server" else 2)
    directory = LabDirectory(place / "results" / "labs" / ended.lab)
    usable = [record for record in directory.records() if record.status.comparable]
    assert len({(record.cell.name, record.block) for record in usable}) == 12
    assert not [path for path in directory.path.glob(".*.live") if live.read(path)]


@contextmanager
def _same(server: subprocess.Popen[str], address: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    yield server, address
