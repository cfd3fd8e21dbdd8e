"""Replays captures on restored data, compares the replays with the recording and with an original run, and measures the
time to read a log.

Four clients of pgbench run three kinds of work: `tpcb-like`; purchases with identity columns, random UUIDs, RETURNING,
foreign keys and a trigger; and the script of `igen-oltp` with `weight=heavy`, on data that ironbench loads. Each is
logged with marks before and after it. The replay runs with `mode=fast`
on another server, on data restored from a dump. For the original run, pgbench runs on that server with the same data
and without a log.

The original run and the replay alternate. `IRONBENCH_BENCH_TRANSACTIONS=500` makes the benchmark short, and
`IRONBENCH_BENCH_WORK=igen-oltp` runs one kind of work.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import captures
from bench.figures import at_least, at_most, equal, report, within
from bench.pairs import interleaved, ratio
from bench.peers import matched_group
from bench.series import number_from_environment
from ironbench import workloads
from ironbench.model.system import Choice
from tests.live.raw_server import RawServer, binary

TRANSACTIONS = 5000
"""Number of transactions per client."""
CLIENTS = 4
PAIRS = 5
_STATISTICS_S = 1.0
LOG = ("logging_collector=on", "log_destination=csvlog", "log_min_duration_statement=0", "log_rotation_size=0")
IGEN_OLTP = {"scale": "4", "weight": "heavy"}
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
    prepare: Callable[[Path, RawServer], None]
    """Creates the tables in the database `shop`."""
    words: tuple[str, ...]
    rows: float = 0.0
    """Permitted difference of the number of changed rows, in %."""


def main() -> None:
    transactions = number_from_environment("IRONBENCH_BENCH_TRANSACTIONS", TRANSACTIONS)
    chosen = os.environ.get("IRONBENCH_BENCH_WORK", "")
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as path:
        folder = Path(path)
        (folder / "purchases.sql").write_text(PURCHASES)
        for work in (
            Work("tpcb-like", _of_pgbench, ("-b", "tpcb-like")),
            Work("purchases", _of_purchases, ("-f", str(folder / "purchases.sql"))),
            _igen_oltp(folder / "business.sql"),
        ):
            if not chosen or work.name == chosen:
                _compare(folder / work.name, work, transactions)


def _of_pgbench(_folder: Path, server: RawServer) -> None:
    command = [binary("pgbench"), *captures.at(server), "-i", "-q", "-s", "10", "shop"]
    subprocess.run(command, check=True, capture_output=True)


def _of_purchases(_folder: Path, server: RawServer) -> None:
    subprocess.run([binary("psql"), *captures.at(server), "-q", "-c", TABLES, "shop"], check=True)


def _igen_oltp(script: Path) -> Work:
    """Returns the work of `igen-oltp` with `weight=heavy`. Writes its script."""
    workload = workloads.get("igen-oltp")
    options = workload.validated(IGEN_OLTP)
    (heavy,) = workload.scripts("postgres", Choice("igen-oltp", options))
    script.write_text(heavy.text)
    variables = [word for name, value in workload.variables(options).items() for word in ("-D", f"{name}={value}")]
    # The oldest order, which is archived, and its number of lines depend on the order of concurrent transactions.
    return Work("igen-oltp", _of_igen_oltp, ("-f", str(script), *variables), 0.1)


def _of_igen_oltp(folder: Path, server: RawServer) -> None:
    """Loads the data with a trial of one transaction."""
    options = [word for name, value in IGEN_OLTP.items() for word in ("--with", f"{name}={value}")]
    load = ("--clients", "1", "--transactions", "1", "--warmup", "0s", "--no-observe")
    address = ("--dsn", captures.dsn(server, "shop"), "--results", "loaded")
    captures.ironbench(folder, "run", "igen-oltp", *options, *load, *address, flagged=True)


def _compare(folder: Path, work: Work, transactions: int) -> None:
    folder.mkdir()
    print(f"  {work.name}, {CLIENTS} clients, {transactions} transactions of each")
    _record(folder, work, transactions)
    with RawServer(*captures.SETTINGS) as server:
        original, replay, metrics = _pairs(folder, server, work, transactions)
    speed = ratio(replay, original)
    report("throughput of the replay / of the original run", speed, within(0.95, 1.05))
    report("mix of statements, difference, %", 100 * metrics["replay_divergence{of=mix}"], equal(0))
    sent = metrics["replayed_statements"]
    report("statements that succeeded, %", 100 * (1 - metrics["errors"] / sent), at_least(99.5))
    for measure in ("rows_inserted", "rows_updated", "rows_deleted", "wal_bytes", "wal_records"):
        values = [metrics[f"{one}_work{{of={measure}}}"] for one in ("recorded", "replayed")]
        asked_for = at_most(5) if measure in ("wal_bytes", "wal_records") else at_most(work.rows)
        difference = 100 * metrics[f"replay_divergence{{of={measure}}}"]
        report(f"{measure}: {values[0]:,.0f} recorded, {values[1]:,.0f} replayed, difference, %", difference, asked_for)
    if keys := metrics.get("replayed_keys"):
        report(f"of {keys:,.0f} generated keys, not generated in time", metrics["replay_missing_keys"], equal(0))


def _record(folder: Path, work: Work, transactions: int) -> None:
    with RawServer(*captures.SETTINGS, *LOG, f"log_directory={folder / 'log'}", "log_filename=work.log") as server:
        at = captures.at(server)
        subprocess.run([binary("createdb"), *at, "shop"], check=True)
        work.prepare(folder, server)
        subprocess.run([binary("pg_dump"), *at, "-Fc", "-Z0", "-f", str(folder / "shop.dump"), "shop"], check=True)
        dsn = captures.dsn(server, "shop")
        # The recording starts after a checkpoint, as replays do. Otherwise, only replays would write full-page images.
        captures.settle(server)
        captures.ironbench(folder, "capture", "--mark", dsn)
        _pgbench(server, "shop", work, transactions)
        time.sleep(_STATISTICS_S)
        captures.ironbench(folder, "capture", "--mark", dsn)
    (log,) = (folder / "log").glob("*.csv")
    began = time.monotonic()
    captures.ironbench(folder, "capture", str(log), "-o", "shop.capture")
    took_s = time.monotonic() - began
    report(f"command that makes a capture from a log of {log.stat().st_size / 1e6:.0f} MB, s", took_s)


def _pairs(
    folder: Path, server: RawServer, work: Work, transactions: int
) -> tuple[list[float], list[float], Mapping[str, float]]:
    at = captures.at(server)
    metrics: dict[str, float] = {}

    def original() -> float:
        subprocess.run([binary("dropdb"), *at, "--if-exists", "again"], check=True)
        subprocess.run([binary("createdb"), *at, "again"], check=True)
        subprocess.run([binary("pg_restore"), *at, "-d", "again", str(folder / "shop.dump")], check=True)
        # Replays do the same after they have restored the data.
        subprocess.run([binary("psql"), *at, "-q", "-c", "vacuum (freeze, analyze)", "again"], check=True)
        captures.settle(server)
        return _pgbench(server, "again", work, transactions)

    def replay() -> float:
        dsn = captures.dsn(server, "postgres")
        words = ("--with", "file=shop.capture", "--with", "mode=fast", "--dump", "shop.dump", "--no-observe")
        captures.settle(server)
        captures.ironbench(folder, "run", "capture", *words, "--dsn", dsn, "--results", "results", flagged=True)
        metrics.update(captures.newest(folder / "results"))
        # One transaction of pgbench may be several transactions of the capture.
        return transactions * CLIENTS / (metrics["transactions"] / metrics["throughput"])

    of_original, of_replay = interleaved(PAIRS, original, replay)
    return of_original, of_replay, metrics


def _pgbench(server: RawServer, database: str, work: Work, transactions: int) -> float:
    """Returns transactions per second."""
    words = ("-n", "-M", "prepared", "-c", str(CLIENTS), "-t", str(transactions), "--random-seed=1", *work.words)
    command = [binary("pgbench"), *captures.at(server), *words, database]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(matched_group(r"tps = ([\d.]+)", done.stdout))
