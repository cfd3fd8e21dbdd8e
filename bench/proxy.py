"""The proxy of `ironbench capture --listen`: what it adds to a round trip, what it costs in throughput, and how many
sessions it passes on. PgBouncer runs next to it if it is installed.

Runs alternate between a direct connection, the proxy and PgBouncer, all over TCP on loopback. `added per round trip` is
the difference of the medians of single `select 1`. For the throughput, transactions of `tpcb-like` start at half of the
rate at which they use all CPUs without a proxy. `IRONBENCH_BENCH_PAIRS=3` is short.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.figures import at_least, at_most, equal, report
from bench.pairs import T975, in_turn, ratio
from bench.series import number_from_environment
from tests.live.raw_server import RawServer, binary, free_port

PAIRS = 10
SETTINGS = ("shared_buffers=256MB", "max_wal_size=2GB", "checkpoint_timeout=1h", "max_connections=1100")
ROUND_TRIPS = 8000
LASTS_S = 4
CLIENTS = 8
SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the server."""

    name: str
    port: int


def main() -> None:
    pairs = number_from_environment("IRONBENCH_BENCH_PAIRS", PAIRS)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as path, RawServer(*SETTINGS) as server:
        folder = Path(path)
        (folder / "one.sql").write_text("select 1;\n")
        words = ["-h", server.host, "-p", str(server.port), "-U", "postgres"]
        subprocess.run([binary("pgbench"), *words, "-i", "-q", "-s", "10", "postgres"], check=True, capture_output=True)
        with _proxy(folder, server) as proxy, _pgbouncer(folder, server) as bouncer:
            ways = [Way("direct", server.port), proxy, *([bouncer] if bouncer else [])]
            _round_trips(folder, ways, pairs)
            _throughput(ways, pairs)
        with _proxy(folder / "many", server) as proxy:
            _sessions(folder, proxy)
        with duckdb.connect() as opened:
            capture = f"read_parquet('{folder / 'many' / 'shop.capture'}')"
            condition = "template = 'select ?'"
            sql = f"select count(*), count(distinct session) from {capture} where {condition}"
            ((statements, sessions),) = opened.execute(sql).fetchall()
        report("sessions in the capture", float(sessions), equal(SESSIONS))
        report("statements in the capture", float(statements), equal(SESSIONS * 10))


def _round_trips(folder: Path, ways: list[Way], pairs: int) -> None:
    direct, *others = in_turn(pairs, *[lambda way=way: _median_us(folder, way) for way in ways])
    report("round trip without a proxy, p50, µs", statistics.fmean(direct))
    for way, medians in zip(ways[1:], others, strict=True):
        added = [one - other for one, other in zip(medians, direct, strict=True)]
        half = T975[max(df for df in T975 if df < pairs)] * statistics.stdev(added) / math.sqrt(pairs)
        mean = statistics.fmean(added)
        shown = f"{mean:.1f} (95 % interval {mean - half:.1f} to {mean + half:.1f}, {pairs} pairs)"
        report(f"{way.name}: added per round trip, p50, µs", mean, at_most(30) if way.name == "proxy" else "", shown)


def _median_us(folder: Path, way: Way) -> float:
    log = folder / f"log-{way.name}"
    words = ("-M", "prepared", "-c", "1", "-t", str(ROUND_TRIPS), "-f", str(folder / "one.sql"))
    _pgbench(way, *words, "-l", f"--log-prefix={log}")
    (written,) = folder.glob(f"log-{way.name}.*")
    latencies = [int(line.split()[2]) for line in written.read_text().splitlines()]
    written.unlink()
    return statistics.median(latencies)


def _throughput(ways: list[Way], pairs: int) -> None:
    peak, _ = _loaded(ways[0], None)
    rate = 0.5 * peak
    direct, *others = in_turn(pairs, *[lambda way=way: _loaded(way, rate) for way in ways])
    report("CPU time in use without a proxy, %", 100 * statistics.fmean(busy for _, busy in direct))
    for way, runs in zip(ways[1:], others, strict=True):
        share = ratio([tps for tps, _ in runs], [tps for tps, _ in direct])
        target = at_least(0.97) if way.name == "proxy" else ""
        report(f"{way.name}: throughput / direct at {rate:.0f} transactions per second", share, target)
        report(f"{way.name}: CPU time in use, %", 100 * statistics.fmean(busy for _, busy in runs))
    direct, *others = in_turn(pairs, *[lambda way=way: _loaded(way, None) for way in ways])
    for way, runs in zip(ways[1:], others, strict=True):
        share = ratio([tps for tps, _ in runs], [tps for tps, _ in direct])
        report(f"{way.name}: throughput / direct with all CPUs busy", share)


def _loaded(way: Way, rate: float | None) -> tuple[float, float]:
    """Returns transactions per second, and the share of the machine's CPU time that was in use."""
    limit = () if rate is None else ("-R", f"{rate:.0f}")
    before = _cpu()
    words = ("-b", "tpcb-like", "-M", "prepared", "-c", str(CLIENTS), "-T", str(LASTS_S))
    shown = _pgbench(way, *words, *limit)
    busy, whole = (after - first for after, first in zip(_cpu(), before, strict=True))
    return _tps(shown), busy / whole


def _sessions(folder: Path, proxy: Way) -> None:
    words = ("-M", "prepared", "-c", str(SESSIONS), "-j", "2", "-t", "10", "-f", str(folder / "one.sql"))
    report(f"throughput of {SESSIONS} sessions, transactions per second", _tps(_pgbench(proxy, *words)))


def _cpu() -> tuple[int, int]:
    """Returns the CPU time in use, and all CPU time."""
    times = [int(one) for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


def _pgbench(way: Way, *words: str) -> str:
    command = [binary("pgbench"), "-h", "127.0.0.1", "-p", str(way.port), "-U", "postgres", "-n", *words, "postgres"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _tps(shown: str) -> float:
    found = re.search(r"tps = ([\d.]+)", shown)
    assert found is not None, shown
    return float(found[1])


@contextmanager
def _proxy(folder: Path, server: RawServer) -> Iterator[Way]:
    folder.mkdir(exist_ok=True)
    capture = folder / "shop.capture"
    port = free_port()
    dsn = f"postgresql://127.0.0.1:{server.port}/postgres?sslmode=disable"
    code = "from ironbench.start import main; main()"
    words = ("capture", "--listen", f"127.0.0.1:{port}", "--to", dsn, "-o", str(capture))
    with (folder / "stderr").open("w") as said:
        process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=said, stdout=subprocess.DEVNULL)
    try:
        while "listening on" not in (folder / "stderr").read_text():
            assert process.poll() is None, (folder / "stderr").read_text()
            time.sleep(0.05)
        yield Way("proxy", port)
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        report("proxy: memory, MB", int(found[1]) / 1000 if found else math.nan)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    print(f"  {(folder / 'stderr').read_text().splitlines()[-2].strip()}")


@contextmanager
def _pgbouncer(folder: Path, server: RawServer) -> Iterator[Way | None]:
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        print("  without PgBouncer, which is not installed")
        yield None
        return
    port = free_port()
    settings = (
        f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = session\nmax_client_conn = 1100\n"
        "default_pool_size = 1000\nignore_startup_parameters = extra_float_digits\n"
    )
    # auth_type=any needs a user for the server's side.
    settings = settings.replace(f"port={server.port}\n", f"port={server.port} user=postgres\n")
    (folder / "pgbouncer.ini").write_text(settings)
    folder.chmod(0o755)
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen([program, "-q", *user, str(folder / "pgbouncer.ini")])
    try:
        time.sleep(1)
        assert process.poll() is None, "PgBouncer has ended"
        yield Way("pgbouncer", port)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        process.wait()


if __name__ == "__main__":
    main()
