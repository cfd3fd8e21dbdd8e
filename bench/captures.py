"""Common code of the benchmarks of captures: commands, the log of a pgbench run, CPU time and memory of a process."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.raw_server import RawServer, binary

SETTINGS = ("shared_buffers=256MB", "max_wal_size=2GB", "checkpoint_timeout=1h")
PGREPLAY = shutil.which("pgreplay")
PROGRAMS = Path("/usr/lib/postgresql/15/bin")
"""pgreplay 1.2 does not find the parameters in logs of PostgreSQL 16 and later, so both replays use this version."""
LOG_FOR_BOTH = (
    "logging_collector=on", "log_destination=csvlog", "log_rotation_size=0", "log_filename=work.log",
    "log_connections=on", "log_disconnections=on",
)  # fmt: skip
"""pgreplay recognises sessions by the lines about their connection."""
_STATEMENTS = "log_statement = 'all'", "log_duration = on"
"""pgreplay ignores the lines of `log_min_duration_statement`."""
_LOGGED_S = 1.0
_POLLS_S = 0.01
_PGREPLAY_S = 120.0
"""pgreplay waits for ever if its sessions lock rows in another order than in the recording."""


@dataclass(frozen=True, slots=True)
class Used:
    """CPU time, memory and output of a process, from its start to its end."""

    cpu_s: float
    """User and system time, with those of its children."""
    peak_bytes: int
    """Peak resident set size of the process itself, with pages of files that it maps."""
    own_bytes: int
    """Peak of the memory that belongs to no file, at samples."""
    out: str
    code: int


def used(command: Sequence[str], folder: Path, wanted: Sequence[int] = (0,), limit_s: float = math.inf) -> Used:
    """Runs a command in `folder`. Raises RuntimeError if its exit code is not one of `wanted`, and if it runs longer
    than `limit_s`."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
        # The kernel's maximum of a child (`ru_maxrss`) also counts this process, from which the child was forked.
        peak, own, done, status, usage = 0, 0, 0, 0, None
        ends = time.monotonic() + limit_s
        while not done:
            lines = Path(f"/proc/{process.pid}/status").read_text()
            peak, own = max(peak, _bytes(lines, "VmHWM")), max(own, _bytes(lines, "RssAnon"))
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not done:
                time.sleep(_POLLS_S)
            if not done and time.monotonic() > ends:
                os.kill(process.pid, signal.SIGKILL)
        assert usage is not None
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if process.returncode not in wanted:
        raise RuntimeError(f"{' '.join(command)}: {text}")
    return Used(usage.ru_utime + usage.ru_stime, peak, own, text, process.returncode)


def ironbench(folder: Path, *words: str, flagged: bool = False) -> Used:
    """Runs a command of ironbench. `flagged`: its trials may be flagged."""
    code = "from ironbench.start import main; main()"
    return used([sys.executable, "-c", code, *words], folder, (0, 3) if flagged else (0,))


def newest(results: Path) -> dict[str, Any]:
    """Returns the metrics of the newest trial."""
    trials = results.glob("trials/*/record.json")
    record = json.loads(max(trials, key=lambda path: path.stat().st_mtime_ns).read_text())
    return {**record["metrics"], "status": record["status"]}


def pgreplay(folder: Path, server: RawServer, *words: str) -> Used:
    """Replays `folder / "work.replay"` with pgreplay."""
    assert PGREPLAY is not None
    where = ("-h", server.host, "-p", str(server.port))
    return used([PGREPLAY, "-r", *words, *where, "work.replay"], folder, limit_s=_PGREPLAY_S)


def at(server: RawServer) -> tuple[str, ...]:
    return ("-h", server.host, "-p", str(server.port), "-U", "postgres")


def dsn(server: RawServer, database: str) -> str:
    return f"postgresql://postgres@/{database}?host={server.host}&port={server.port}"


def restore(server: RawServer, database: str = "shop") -> None:
    """Makes `database` a copy of the database `original`, without dirty pages."""
    subprocess.run([binary("dropdb"), *at(server), "--if-exists", database], check=True, capture_output=True)
    subprocess.run([binary("createdb"), *at(server), "-T", "original", database], check=True)
    settle(server)


def settle(server: RawServer) -> None:
    session = server.connect()
    session.query("checkpoint")
    session.close()


def recorded(folder: Path, server: RawServer, log: Path, *words: str) -> None:
    """Runs pgbench on the restored database `shop`, and writes `work.csv`, `shop.capture` and `work.replay`."""
    restore(server)
    for setting in _STATEMENTS:
        command = [binary("psql"), *at(server), "-q", "-c", f"alter database shop set {setting}", "postgres"]
        subprocess.run(command, check=True)
    log.write_bytes(b"")
    subprocess.run([binary("pgbench"), *at(server), "-n", *words, "shop"], check=True, capture_output=True)
    time.sleep(_LOGGED_S)
    folder.mkdir(exist_ok=True)
    shutil.copy(log, folder / "work.csv")
    ironbench(folder, "capture", "work.csv", "-o", "shop.capture")
    if PGREPLAY:
        used([PGREPLAY, "-f", "-c", "-o", "work.replay", "work.csv"], folder)


def _bytes(lines: str, name: str) -> int:
    """Returns a number of bytes from proc_pid_status(5), or 0 if the process has ended."""
    found = re.search(rf"{name}:\s+(\d+) kB", lines)
    return int(found[1]) * 1024 if found else 0
