"""The kinds of jobs that `bench job_kills` kills, and how each is continued."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any
from urllib.parse import urlencode

from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import ENDED

COMMAND = (sys.executable, "-m", "ironbench.start")
TOKEN = "a-token-for-a-bench-alone"
PATIENCE_S = 300.0
_LAB = """question = "Do two clients get more done than one?"
[workload]
name = "{workload}"
[system]
engine = "{engine}"
[load]
duration = "{duration}"
warmup = "0s"
[vary]
{vary}
[measure]
repeats = 6
quiet = "0s"
{measure}
"""
_CLIENTS = "clients = [1, 2]"
_SHOP = """CREATE TABLE item (id integer PRIMARY KEY, name text);
INSERT INTO item SELECT n, 'item ' || n FROM generate_series(1, 20000) n;
"""


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    begin: tuple[str, ...] = ()
    """Arguments of the command; `{results}` and `{home}` are replaced."""
    resume: tuple[str, ...] = ()
    """Command that continues the job after it has started; empty: the same command."""
    trials: int | None = None
    """Final number of usable trials, including those that confirm the best; None if the job writes no records."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to create below the home directory."""
    serves: str = ""
    """Lab file that is queued through `ironbench serve`."""
    lab: bool = False
    """Whether the results are a lab's directory."""
    longest_s: float = 6.0
    """Kills occur within this time after the start."""


def lab(
    measure: str = "",
    workload: str = "select-only",
    engine: str = "postgres",
    vary: str = _CLIENTS,
    duration: str = "0.5s",
) -> str:
    return _LAB.format(workload=workload, engine=engine, duration=duration, vary=vary, measure=measure)


_RUN = ("--results", "{results}", "--warmup", "0s")
_SHORT = ("--duration", "0.5s", "--clients", "1,2", "--repeats", "2", "--seed", "1")
_OF_LAB = ("lab", "resume", "{results}")
KINDS = (
    Kind("run", ("run", "igen-oltp", "--with", "scale=1", *_SHORT, *_RUN), trials=7),
    Kind(
        "run by workers",
        ("run", "select-only", "--workers", "2", "--clients", "2", *_SHORT[:2], *_RUN),
        trials=1,
        longest_s=12,
    ),
    Kind(
        "lab by trials",
        ("lab", "run", "{home}/a.toml", "--results", "{results}"),
        _OF_LAB,
        12,
        {"a.toml": lab()},
        lab=True,
    ),
    Kind(
        "lab by slices",
        ("lab", "run", "{home}/b.toml", "--results", "{results}"),
        _OF_LAB,
        12,
        {
            "b.toml": lab(
                'method = "slices"\nslice = "0.2s"',
                vary='[vary.memory]\nsmall = { memory = "32MB" }\nlarge = { memory = "64MB" }',
                duration="1s",
            )
        },
        lab=True,
    ),
    Kind(
        "gated lab",
        ("lab", "run", "{home}/c.toml", "--gate", "--results", "{results}"),
        _OF_LAB,
        12,
        {"c.toml": lab(engine="sqlite", workload="tpcb-like")},
        lab=True,
    ),
    Kind("queued lab", trials=12, files={"q.toml": lab(engine="null")}, serves="q.toml", lab=True, longest_s=8),
    Kind(
        "own data",
        ("run", "script", "{home}/s.sql", "--setup", "{home}/shop.sql", "--engine", "postgres", *_SHORT, *_RUN),
        trials=7,
        files={"shop.sql": _SHOP, "s.sql": "\\set i random(1, 20000)\nSELECT name FROM item WHERE id = :i;\n"},
    ),
    Kind("load of MariaDB", ("run", "tpcb-like", "--engine", "mariadb", *_SHORT, *_RUN), trials=7),
    Kind("populate", ("run", "populate", "--with", "gb=0.05", "--clients", "2", "--results", "{results}"), trials=1),
    Kind("directory", ("run", "directory", "--with", "entries=2000", *_SHORT, *_RUN), trials=7),
    Kind(
        "emulated device",
        ("run", "tpcb-like", "--engine", "sqlite", "--data", "free", *_SHORT, *_RUN),
        trials=7,
        longest_s=10,
    ),
    Kind("mounted device", ("device", "mount", "hdd-7200", "{home}/mounted", "--capacity", "256MB"), longest_s=4),
    Kind(
        "storage",
        ("run", "storage", "--with", "size=64MiB", "--results", "{results}", "--data", "{home}/storage"),
        trials=None,
        longest_s=8,
    ),
)


def words_of(words: tuple[str, ...], home: Path, results: Path) -> list[str]:
    return [*COMMAND, *(word.format(home=home, results=results) for word in words)]


@contextmanager
def started(words: list[str], environment: Mapping[str, str], log: Path) -> Iterator[Popen[Any]]:
    """Runs a command in a separate process group."""
    with log.open("ab") as out:
        running = Popen(words, stdout=out, stderr=out, stdin=DEVNULL, env=environment, start_new_session=True)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextmanager
def serving(results: Path, environment: Mapping[str, str], log: Path) -> Iterator[tuple[Popen[Any], str]]:
    """Yields the process of `ironbench serve`, and its address."""
    words = [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--results", str(results)]
    with log.open("ab") as err:
        server = Popen(
            words, stdout=PIPE, stderr=err, stdin=DEVNULL, text=True, start_new_session=True,
            env={**environment, "IRONBENCH_TOKEN": TOKEN},
        )  # fmt: skip
    try:
        assert server.stdout is not None
        yield server, server.stdout.readline().partition("/?")[0]
    finally:
        server.kill()
        server.wait()


def queued(address: str, name: str, text: str) -> None:
    data = urlencode({"name": name, "text": text}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{address}/queue", data, {"authorization": f"Bearer {TOKEN}"})):
        pass


def ended(queue: Queue) -> bool:
    """Waits until every entry of the queue is done."""
    return until(lambda: all(entry.state in ENDED for entry in queue.entries()))


def until(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def environment(home: Path, mark: str) -> dict[str, str]:
    """Returns the environment in which ironbench stores everything below `home`; every process that it starts inherits
    `mark`."""
    for name in ("runtime", "tmp", "cache", "data"):
        (home / name).mkdir(mode=0o700, exist_ok=True)
    source = Path(__file__).parents[1] / "src"
    return {
        **os.environ,
        "PYTHONPATH": str(source),
        "XDG_RUNTIME_DIR": str(home / "runtime"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TMPDIR": str(home / "tmp"),
        "IRONBENCH_DATA": str(home / "data"),
        "IRONBENCH_KILLED_JOB": mark,
    }
