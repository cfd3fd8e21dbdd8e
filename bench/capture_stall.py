"""A replay with `mode=schedule` while every backend is stopped for 1 s: response times must include the backlog. What
pgreplay reports for the same log is next to it.

Eight clients of pgbench start transactions at half of their peak throughput; a transaction is one statement that needs
only CPU time. A replay with `mode=fast` measures the capacity C; the recorded rate is the share ρ of C. As in
`bench/stall.py`, a transaction that is due t seconds after the stop began waits 1 s - (1 - ρ) t. The slowest share q of
all transactions of a recording of T seconds therefore waits at least 1 s - (1 - ρ) q T.

pgreplay reports no percentiles, but the share of statements that took longer than 0.5 s. It is compared with the share
of the backlog, 0.5 s / (1 - ρ) / T.

Takes about three minutes, and needs pgreplay and PostgreSQL 15 (Debian packages). `IRONBENCH_BENCH_SECONDS=10` makes it
shorter.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import captures
from bench.figures import report, within
from bench.peers import matched_group
from bench.series import number_from_environment
from tests.live.raw_server import RawServer, binary

SECONDS = 20
STOP_S = 1.0
SHARE = 0.5
CLIENTS = 8
SCRIPT = "SELECT count(*) FROM generate_series(1, 2000);\n"
_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname <> 'postgres' "
    "AND pid <> pg_backend_pid()"
)
_CONNECTED_S = 60.0


def main() -> None:
    if captures.PGREPLAY is None or not captures.PROGRAMS.exists():
        raise RuntimeError("needs the Debian packages pgreplay and postgresql-15")
    seconds = number_from_environment("IRONBENCH_BENCH_SECONDS", SECONDS)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as path:
        folder = Path(path)
        (folder / "work.sql").write_text(SCRIPT)
        settings = (*captures.SETTINGS, *captures.LOG_FOR_BOTH, f"log_directory={folder / 'log'}")
        with RawServer(*settings, programs=captures.PROGRAMS) as server:
            captures.used([binary("createdb"), *captures.at(server), "original"], folder)
            _measure(folder, server, seconds)


def _measure(folder: Path, server: RawServer, seconds: int) -> None:
    words = ("-c", str(CLIENTS), "-f", str(folder / "work.sql"))
    peak = captures.used([binary("pgbench"), *captures.at(server), "-n", *words, "-T", "3", "original"], folder)
    rate = SHARE * float(matched_group(r"tps = ([\d.]+)", peak.out))
    log = folder / "log" / "work.csv"
    captures.recorded(folder, server, log, *words, "-T", str(seconds), "-R", f"{rate:.0f}")
    capacity = min(_replay(folder, server, "fast")["throughput"] for _ in range(2))
    with _stopped(server, seconds / 4):
        metrics = _replay(folder, server, "schedule")
    share = metrics["transactions"] / seconds / capacity
    print(f"  {metrics['transactions']:.0f} transactions in {seconds} s, {share:.0%} of {capacity:.0f}/s")
    for name, quantile in (("p99", 0.99), ("p99.9", 0.999)):
        due = STOP_S - (1 - share) * (1 - quantile) * seconds
        measured = metrics[f"response_time_{name.replace('.', '')}_s"]
        shown = f"{measured / due:.3f} ({measured * 1e3:.0f} ms)"
        report(f"response time {name} / backlog curve ({due * 1e3:.0f} ms)", measured / due, within(0.9, 1.1), shown)
    captures.restore(server)
    with _stopped(server, seconds / 4):
        peer = captures.pgreplay(folder, server)
    over = float(matched_group(r"0\.5 +to 2 +seconds: ([\d.]+)%", peer.out))
    expected = 100 * STOP_S / 2 / (1 - share) / seconds
    report("pgreplay: statements longer than 0.5 s, %", f"{over:.3f} (backlog curve: {expected:.1f})")
    for what in ("Maximum SQL statement duration", "Maximum lag behind schedule"):
        report(f"pgreplay: {what}, s", matched_group(rf"{what}: ([\d.]+) seconds", peer.out))


def _replay(folder: Path, server: RawServer, mode: str) -> dict[str, float]:
    words = ("--with", "file=shop.capture", "--with", f"mode={mode}", "--template", "original", "--no-observe")
    address = ("--dsn", captures.dsn(server, "postgres"), "--results", "results")
    captures.ironbench(folder, "run", "capture", *words, *address, flagged=True)
    return captures.newest(folder / "results")


@contextmanager
def _stopped(server: RawServer, after_s: float) -> Iterator[None]:
    """Stops all backends for `STOP_S`, `after_s` after all clients have connected."""
    stopper = threading.Thread(target=_stop, args=(server, after_s), daemon=True)
    stopper.start()
    yield
    assert not stopper.is_alive(), "the replay ended before its backends were stopped"


def _stop(server: RawServer, after_s: float) -> None:
    session = server.connect()
    ends = time.monotonic() + _CONNECTED_S
    while len(session.query(_BACKENDS)) < CLIENTS and time.monotonic() < ends:
        time.sleep(0.02)
    time.sleep(after_s)
    backends = [int(row[0] or 0) for row in session.query(_BACKENDS)]
    for pid in backends:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(STOP_S)
    for pid in backends:
        os.kill(pid, signal.SIGCONT)
    session.close()
