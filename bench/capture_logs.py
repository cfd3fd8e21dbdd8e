"""Reading a csvlog into a capture: MB per second and core, and whether the peak memory depends on the length of the
log. pgBadger reads the same log next to it, if it is installed (Debian packages pgbadger and libtext-csv-xs-perl).

Four clients of pgbench run `tpcb-like` with `log_min_duration_statement=0`, for a short and for a ten times longer
recording. The rate is the difference of the sizes, divided by the difference of the CPU times of all threads, so that
the start of the program does not count. ironbench keeps every statement with its parameters in a compressed file;
pgBadger aggregates the statements into a report in HTML and keeps samples.

Takes about three minutes. `IRONBENCH_BENCH_SECONDS=5` makes the longer recording 5 s long.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import captures
from bench.captures import Used
from bench.figures import at_least, at_most, report
from bench.series import number_from_environment
from tests.live.raw_server import RawServer, binary

SECONDS = 40
CLIENTS = 4
LONGER = 10
TIMES = 3
LEAST_MB_PER_S = 150
_GROWTH = 1.1
_LOGGED_S = 1.0
LOG = ("logging_collector=on", "log_destination=csvlog", "log_min_duration_statement=0", "log_rotation_size=0")


def main() -> None:
    seconds = number_from_environment("IRONBENCH_BENCH_SECONDS", SECONDS)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as path:
        folder = Path(path)
        _record(folder, seconds)
        long, short = folder / "long.csv", folder / "short.csv"
        print(f"  logs of {_mb(short):.1f} and {_mb(long):.0f} MB")
        _compare("ironbench capture", short, long, lambda log: _by_ironbench(folder, log), is_ours=True)
        if shutil.which("pgbadger"):
            _compare("pgBadger", short, long, lambda log: _by_pgbadger(folder, log), is_ours=False)
        else:
            print("  without pgBadger, which is not installed")


def _record(folder: Path, seconds: int) -> None:
    """Writes two logs: the first part, and everything."""
    settings = (*captures.SETTINGS, *LOG, f"log_directory={folder / 'log'}", "log_filename=work.log")
    with RawServer(*settings) as server:
        at = captures.at(server)
        captures.used([binary("createdb"), *at, "shop"], folder)
        captures.used([binary("pgbench"), *at, "-i", "-q", "-s", "10", "shop"], folder)
        words = ("-n", "-M", "prepared", "-b", "tpcb-like", "-c", str(CLIENTS))
        command = [binary("pgbench"), *at, *words]
        captures.used([*command, "-T", str(max(1, seconds // LONGER)), "shop"], folder)
        time.sleep(_LOGGED_S)
        shutil.copy(folder / "log" / "work.csv", folder / "short.csv")
        captures.used([*command, "-T", str(seconds), "shop"], folder)
        time.sleep(_LOGGED_S)
    shutil.move(folder / "log" / "work.csv", folder / "long.csv")


def _compare(name: str, short: Path, long: Path, read: Callable[[Path], Used], is_ours: bool) -> None:
    rates, growths, peaks = [], [], []
    for _ in range(TIMES if is_ours else 1):  # pgBadger needs many times as long
        of_short, of_long = read(short), read(long)
        rates.append((_mb(long) - _mb(short)) / (of_long.cpu_s - of_short.cpu_s))
        growths.append(of_long.peak_bytes / of_short.peak_bytes)
        peaks.append(of_long.peak_bytes / 1e6)
    rate = statistics.median(rates)
    report(f"{name}: MB per second and core", rate, at_least(LEAST_MB_PER_S) if is_ours else "")
    growth = statistics.median(growths)
    shown = f"{growth:.3f} ({statistics.median(peaks):.0f} MB for the long log)"
    what = f"{name}: peak memory, {_mb(long) / _mb(short):.0f} times longer log / short log"
    report(what, growth, at_most(_GROWTH) if is_ours else "", shown)


def _by_ironbench(folder: Path, log: Path) -> Used:
    (folder / "read.capture").unlink(missing_ok=True)
    return captures.ironbench(folder, "capture", str(log), "-o", "read.capture")


def _by_pgbadger(folder: Path, log: Path) -> Used:
    return captures.used(["pgbadger", "-q", "-j", "1", "-f", "csv", "-o", "report.html", str(log)], folder)


def _mb(path: Path) -> float:
    return path.stat().st_size / 1e6
