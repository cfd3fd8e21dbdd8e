"""Replays captures on restored data, compares the replays with the recording and with an original run, and measures the
time to read a log.

Four clients of pgbench run two kinds of work: `tpcb-like`, and purchases with identity columns, random UUIDs,
RETURNING, foreign keys and a trigger. Each is logged with marks before and after it. The replay runs with `mode=fast`
on another server, on data restored from a dump. For the original run, pgbench runs on that server with the same data
and without a log.

The original run and the replay alternate. `IRONBENCH_BENCH_TRANSACTIONS=500` makes the benchmark short.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.figures import at_least, at_most, equal, report, within
from bench.pairs import interleaved, ratio
from bench.peers import found
from bench.series import asked
from tests.live.raw_server import RawServer, binary

TRANSACTIONS = 5000
"""Number of transactions per client."""
CLIENTS = 4
PAIRS = 5
_STATISTICS_S = 1.0
LOG = ("logging_collector=on", "log_destination=csvlog", "log_min_duration_statement=0", "log_rotation_size=0")
SETTINGS = ("shared_buffers=256MB", "max_wal_size=2GB", "checkpoint_timeout=1h")
TABLES = """
create table buyer (id uuid primary key default gen_random_uuid(), name text);
create table purchase (
    id bigint generated always as identity primary key, buyer uuid not null references buyer, paid int
);
create table line (purchase bigint not null references purchase, number int, primary key (purchase, number));
create table total (place int primary key, n bigint);
insert into total select n, 0 from generate_series(0, 999) n;
create function counted() returns trigger language plpgsql as
    $$ begin update total set n = n + 1 where place = new.id % 1000; return new; end $$;
create trigger counted after insert on purchase for each row execute function counted();
"""
PURCHASES = """insert into buyer (name) values ('new') returning id \\gset buyer_
begin;
insert into purchase (buyer) values (:buyer_id) returning id \\gset purchase_
insert into line values (:purchase_id, 1);
insert into line values (:purchase_id, 2);
update purchase set paid = 1 where id = :purchase_id;
end;
delete from line where purchase = :purchase_id and number = 2;
select name from buyer where id = :buyer_id;
"""


@dataclass(frozen=True, slots=True)
class Work:
    name: str
    prepare: tuple[str, ...]
    """Options of pgbench that create the tables; empty: `TABLES`."""
    words: tuple[str, ...]


def main() -> None:
    transactions = asked("IRONBENCH_BENCH_TRANSACTIONS", TRANSACTIONS)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        (Path(folder) / "purchases.sql").write_text(PURCHASES)
        for work in (
            Work("tpcb-like", ("-i", "-q", "-s", "10"), ("-b", "tpcb-like")),
            Work("purchases", (), ("-f", f"{folder}/purchases.sql")),
        ):
            _compare(Path(folder) / work.name, work, transactions)


def _compare(folder: Path, work: Work, transactions: int) -> None:
    folder.mkdir()
    print(f"  {work.name}, {CLIENTS} clients, {transactions} transactions of each")
    _record(folder, work, transactions)
    with RawServer(*SETTINGS) as server:
        original, replay, metrics = _pairs(folder, server, work, transactions)
    speed = ratio(replay, original)
    report("throughput of the replay / of the original run", speed, within(0.95, 1.05))
    report("mix of statements, difference, %", 100 * metrics["replay_divergence{of=mix}"], equal(0))
    sent = metrics["replayed_statements"]
    report("statements that succeeded, %", 100 * (1 - metrics["errors"] / sent), at_least(99.5))
    for measure in ("rows_inserted", "rows_updated", "rows_deleted", "wal_bytes", "wal_records"):
        values = [metrics[f"{one}_work{{of={measure}}}"] for one in ("recorded", "replayed")]
        asked_for = at_most(5) if measure in ("wal_bytes", "wal_records") else equal(0)
        difference = 100 * metrics[f"replay_divergence{{of={measure}}}"]
        report(f"{measure}: {values[0]:,.0f} recorded, {values[1]:,.0f} replayed, difference, %", difference, asked_for)
    if keys := metrics.get("replayed_keys"):
        report(f"of {keys:,.0f} generated keys, not generated in time", metrics["replay_missing_keys"], equal(0))


def _record(folder: Path, work: Work, transactions: int) -> None:
    with RawServer(*SETTINGS, *LOG, f"log_directory={folder / 'log'}", "log_filename=work.log") as server:
        at = _at(server)
        subprocess.run([binary("createdb"), *at, "shop"], check=True)
        if work.prepare:
            subprocess.run([binary("pgbench"), *at, *work.prepare, "shop"], check=True, capture_output=True)
        else:
            subprocess.run([binary("psql"), *at, "-q", "-c", TABLES, "shop"], check=True)
        subprocess.run([binary("pg_dump"), *at, "-Fc", "-Z0", "-f", str(folder / "shop.dump"), "shop"], check=True)
        dsn = f"postgresql://postgres@/shop?host={server.host}&port={server.port}"
        # The recording starts after a checkpoint, as replays do. Otherwise, only replays would write full-page images.
        _settled(server)
        _ironbench(folder, "capture", "--mark", dsn)
        _pgbench(server, "shop", work, transactions)
        time.sleep(_STATISTICS_S)
        _ironbench(folder, "capture", "--mark", dsn)
    (log,) = (folder / "log").glob("*.csv")
    began = time.monotonic()
    _ironbench(folder, "capture", str(log), "-o", "shop.capture")
    took_s = time.monotonic() - began
    report(f"command that makes a capture from a log of {log.stat().st_size / 1e6:.0f} MB, s", took_s)


def _pairs(
    folder: Path, server: RawServer, work: Work, transactions: int
) -> tuple[list[float], list[float], Mapping[str, float]]:
    at = _at(server)
    metrics: dict[str, float] = {}

    def original() -> float:
        subprocess.run([binary("dropdb"), *at, "--if-exists", "again"], check=True)
        subprocess.run([binary("createdb"), *at, "again"], check=True)
        subprocess.run([binary("pg_restore"), *at, "-d", "again", str(folder / "shop.dump")], check=True)
        _settled(server)
        return _pgbench(server, "again", work, transactions)

    def replay() -> float:
        dsn = f"postgresql://postgres@/postgres?host={server.host}&port={server.port}"
        words = ("--with", "file=shop.capture", "--with", "mode=fast", "--dump", "shop.dump", "--no-observe")
        _settled(server)
        _ironbench(folder, "run", "capture", *words, "--dsn", dsn, "--results", "results", flagged=True)
        newest = max((folder / "results" / "trials").glob("*/record.json"), key=lambda path: path.stat().st_mtime_ns)
        metrics.update(json.loads(newest.read_text())["metrics"])
        # One transaction of pgbench may be several transactions of the capture.
        return transactions * CLIENTS / (metrics["transactions"] / metrics["throughput"])

    of_original, of_replay = interleaved(PAIRS, original, replay)
    return of_original, of_replay, metrics


def _settled(server: RawServer) -> None:
    session = server.connect()
    session.query("checkpoint")
    session.close()


def _pgbench(server: RawServer, database: str, work: Work, transactions: int) -> float:
    """Returns transactions per second."""
    words = ("-n", "-M", "prepared", "-c", str(CLIENTS), "-t", str(transactions), "--random-seed=1", *work.words)
    command = [binary("pgbench"), *_at(server), *words, database]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(found(r"tps = ([\d.]+)", done.stdout))


def _at(server: RawServer) -> tuple[str, ...]:
    return ("-h", server.host, "-p", str(server.port), "-U", "postgres")


def _ironbench(folder: Path, *words: str, flagged: bool = False) -> None:
    code = "from ironbench.start import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode not in ((0, 3) if flagged else (0,)):
        raise RuntimeError(done.stderr)
