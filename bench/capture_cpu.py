"""Client CPU time per statement of a replay with `mode=fast`, compared with pgreplay for the same log and with pgbench
for the same transactions. Also measures whether the memory of a replay depends on the length of the capture.

Four clients of pgbench run `simple-update` with prepared statements on PostgreSQL 15; the log is replayed on copies of
the data. (pgreplay does not end with `tpcb-like`: it sends statements in the order of the log, so it waits for ever if
two sessions lock a row in another order than in the recording.) The three programs alternate. For ironbench, the CPU
time is that of the client threads while they replay. For pgreplay, it is that of the whole process while it replays a
file that it has made from the log before. For pgbench, it is that of the whole process. The preparation of both replays
is reported separately.

The CPU time needs about three minutes, and the capture that is ten times longer about five. The benchmark needs
pgreplay and PostgreSQL 15 (Debian packages). `IRONBENCH_BENCH_TRANSACTIONS=300 IRONBENCH_BENCH_PAIRS=3` makes it short.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import captures
from bench.captures import Used
from bench.figures import at_least, at_most, report
from bench.pairs import in_turn, ratio
from bench.peers import matched_group
from bench.series import number_from_environment
from tests.live.raw_server import RawServer, binary

TRANSACTIONS = 4000
"""Number of transactions per client."""
CLIENTS = 4
PAIRS = 5
LONGER = 10
_PER_TRANSACTION = 5
"""Number of statements in `simple-update`."""
_GROWTH = 1.1


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay of ironbench."""

    per_statement_s: float
    """CPU time of the client threads."""
    statements: float
    whole: Used
    """CPU time and memory of the whole process."""


def main() -> None:
    if captures.PGREPLAY is None or not captures.PROGRAMS.exists():
        raise RuntimeError("needs the Debian packages pgreplay and postgresql-15")
    transactions = number_from_environment("IRONBENCH_BENCH_TRANSACTIONS", TRANSACTIONS)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as path:
        folder = Path(path)
        settings = (*captures.SETTINGS, *captures.LOG_FOR_BOTH, f"log_directory={folder / 'log'}")
        with RawServer(*settings, programs=captures.PROGRAMS) as server:
            at = captures.at(server)
            (folder / "log").chmod(0o755)
            _run("createdb", *at, "original")
            _run("pgbench", *at, "-i", "-q", "-s", "10", "original")
            log = folder / "log" / "work.csv"
            captures.recorded(folder / "short", server, log, *_words(transactions))
            short = _compare(
                folder / "short", server, transactions, number_from_environment("IRONBENCH_BENCH_PAIRS", PAIRS)
            )
            captures.recorded(folder / "long", server, log, *_words(LONGER * transactions))
            _lengths(folder / "long", server, short)


def _words(transactions: int) -> tuple[str, ...]:
    return ("-M", "prepared", "-b", "simple-update", "-c", str(CLIENTS), "-t", str(transactions), "--random-seed=1")


def _compare(folder: Path, server: RawServer, transactions: int, pairs: int) -> Replayed:
    """Returns the last replay."""
    statements = transactions * CLIENTS * _PER_TRANSACTION
    print(f"  {CLIENTS} clients, {transactions} transactions of each, {statements} statements")

    replays: list[Replayed] = []

    def by_ironbench() -> float:
        replays.append(_replay(folder, server))
        assert abs(replays[-1].statements - statements) <= 0.01 * statements, replays[-1]
        return replays[-1].per_statement_s

    def by_pgreplay() -> float:
        captures.restore(server)
        ended = captures.pgreplay(folder, server, "-j", "-s", "1000000")
        sent = int(matched_group(r"SQL statements executed: (\d+)", ended.out))
        assert sent >= statements, ended.out
        return ended.cpu_s / sent

    def by_pgbench() -> float:
        captures.restore(server)
        command = [binary("pgbench"), *captures.at(server), "-n", *_words(transactions), "shop"]
        return captures.used(command, folder).cpu_s / statements

    own, pgreplay, pgbench = in_turn(pairs, by_ironbench, by_pgreplay, by_pgbench)
    report("client CPU per statement / pgreplay", ratio(own, pgreplay), at_most(0.5))
    report("client CPU per statement / pgbench", ratio(own, pgbench), at_most(1.0))
    per_core = ratio([1 / one for one in own], [1.0] * len(own))
    report(
        "statements per second and core of the client",
        per_core,
        at_least(50_000),
        f"{per_core.centre:,.0f} ({per_core.low:,.0f} to {per_core.high:,.0f})",
    )
    medians = (f"{1e6 * statistics.median(one):.2f}" for one in (own, pgreplay, pgbench))
    report("  client CPU per statement, µs: ironbench, pgreplay, pgbench", ", ".join(medians))
    return replays[-1]


def _replay(folder: Path, server: RawServer) -> Replayed:
    words = ("--with", "file=shop.capture", "--with", "mode=fast", "--template", "original", "--no-observe")
    address = ("--dsn", captures.dsn(server, "postgres"), "--results", "results")
    captures.settle(server)
    whole = captures.ironbench(folder, "run", "capture", *words, *address, flagged=True)
    metrics = captures.newest(folder / "results")
    assert not metrics.get("errors"), metrics
    cpu_s = metrics["client_cpu_per_transaction_s"] * metrics["transactions"]
    return Replayed(cpu_s / metrics["replayed_statements"], metrics["replayed_statements"], whole)


def _lengths(folder: Path, server: RawServer, short: Replayed) -> None:
    """Compares the replay of a capture with that of a capture that is `LONGER` times as long."""
    long = _replay(folder, server)
    times = long.statements / short.statements
    size_mb = (folder / "work.csv").stat().st_size / 1e6
    print(f"  {long.statements:,.0f} statements, {times:.1f} times as many, a log of {size_mb:.0f} MB")
    growth = long.whole.peak_bytes / short.whole.peak_bytes
    sizes = f"{growth:.3f} ({long.whole.peak_bytes / 1e6:.0f} MB / {short.whole.peak_bytes / 1e6:.0f} MB)"
    report("peak memory of the process, long capture / short capture", growth, at_most(_GROWTH), sizes)
    own = f"{long.whole.own_bytes / 1e6:.0f} MB / {short.whole.own_bytes / 1e6:.0f} MB"
    report("  of this, memory that belongs to no file", own)
    slope = (long.whole.cpu_s - short.whole.cpu_s) / (long.statements - short.statements)
    report("  CPU of the whole process for each further statement, µs", 1e6 * slope)
    captures.restore(server)
    peer = captures.pgreplay(folder, server, "-j", "-s", "1000000")
    report("  pgreplay: peak memory, MB", peer.peak_bytes / 1e6)
    assert captures.PGREPLAY is not None
    parsed = captures.used([captures.PGREPLAY, "-f", "-c", "-o", "again.replay", "work.csv"], folder)
    made = captures.ironbench(folder, "capture", "work.csv", "-o", "again.capture")
    report("  from log to capture, MB per second and core", size_mb / made.cpu_s)
    report("  pgreplay: from log to replay file, MB per second and core", size_mb / parsed.cpu_s)


def _run(program: str, *words: str) -> None:
    captures.used([binary(program), *words], Path.cwd())
