"""Replays captures of MariaDB on restored data, and compares the replays with the recording and with an original run.

Four clients of ironbench run two kinds of work with prepared statements: `tpcb-like`, and purchases with AUTO_INCREMENT
keys and foreign keys. Each is recorded through the proxy. The replay runs with `mode=fast` on a server that ironbench
starts, on data restored from a dump. The original run sends the script to the same kind of server, with the same data
and without the proxy.

The original run and the replay alternate. `IRONBENCH_BENCH_TRANSACTIONS=500` makes the benchmark short.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import at_least, equal, report, within
from bench.pairs import interleaved, ratio
from bench.series import number_from_environment
from tests.live.raw_mysql import RawMysql
from tests.live.raw_server import free_port

TRANSACTIONS = 3000
"""Number of transactions per client."""
CLIENTS = 4
PAIRS = 5
_ACCOUNTS = 20_000
_HEAD = "-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB, for debian-linux-gnu (x86_64)\n"
_END = "-- Dump completed on 2026-11-30 20:00:00\n"


@dataclass(frozen=True, slots=True)
class Work:
    name: str
    tables: str
    script: str


def _rows(count: int) -> str:
    return ",".join(f"({number},0)" for number in range(1, count + 1))


TPCB = Work(
    "tpcb-like",
    f"""CREATE TABLE accounts (aid int PRIMARY KEY, abalance int);
INSERT INTO accounts VALUES {_rows(_ACCOUNTS)};
CREATE TABLE tellers (tid int PRIMARY KEY, tbalance int);
INSERT INTO tellers VALUES {_rows(100)};
CREATE TABLE branches (bid int PRIMARY KEY, bbalance int);
INSERT INTO branches VALUES {_rows(10)};
CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp);
""",
    f"""\\set aid random(1, {_ACCOUNTS})
\\set bid random(1, 10)
\\set tid random(1, 100)
\\set delta random(-5000, 5000)
begin;
update accounts set abalance = abalance + :delta where aid = :aid;
select abalance from accounts where aid = :aid;
update tellers set tbalance = tbalance + :delta where tid = :tid;
update branches set bbalance = bbalance + :delta where bid = :bid;
insert into history (tid, bid, aid, delta, mtime) values (:tid, :bid, :aid, :delta, current_timestamp);
commit;
""",
)
PURCHASES = Work(
    "purchases",
    """CREATE TABLE purchase (id bigint AUTO_INCREMENT PRIMARY KEY, paid int);
CREATE TABLE line (
    purchase bigint NOT NULL, number int, PRIMARY KEY (purchase, number),
    FOREIGN KEY (purchase) REFERENCES purchase (id)
);
""",
    """begin;
insert into purchase (paid) values (0);
select last_insert_id() as id \\gset
insert into line values (:id, 1);
insert into line values (:id, 2);
update purchase set paid = 1 where id = :id;
commit;
delete from line where purchase = :id and number = 2;
""",
)


def main() -> None:
    transactions = number_from_environment("IRONBENCH_BENCH_TRANSACTIONS", TRANSACTIONS)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        for work in (TPCB, PURCHASES):
            _compare(Path(folder) / work.name, work, transactions)


def _compare(folder: Path, work: Work, transactions: int) -> None:
    folder.mkdir()
    print(f"  {work.name}, {CLIENTS} clients, {transactions} transactions of each")
    (folder / "work.sql").write_text(work.script)
    (folder / "shop.dump").write_text(_HEAD + work.tables + _END)
    _record(folder, transactions)
    metrics: dict[str, Any] = {}
    of_original, of_replay = interleaved(
        PAIRS, lambda: _original(folder, transactions), lambda: _replay(folder, transactions, metrics)
    )
    report("throughput of the replay / of the original run", ratio(of_replay, of_original), within(0.95, 1.05))
    report("mix of statements, difference, %", 100 * metrics["replay_divergence{of=mix}"], equal(0))
    sent, errors = metrics["replayed_statements"], metrics["errors"]
    report("statements that succeeded, %", 100 * (1 - errors / sent), at_least(99.5))
    rows = [metrics[f"{one}_work{{of=rows}}"] for one in ("recorded", "replayed")]
    what = f"rows: {rows[0]:,.0f} recorded, {rows[1]:,.0f} replayed, difference, %"
    report(what, 100 * metrics["replay_divergence{of=rows}"], equal(0))
    if keys := metrics.get("replayed_keys"):
        report(f"of {keys:,.0f} generated keys, not generated in time", metrics["replay_missing_keys"], equal(0))


def _record(folder: Path, transactions: int) -> None:
    (folder / "server").mkdir()
    server = RawMysql(folder / "server", free_port(), ("--innodb-buffer-pool-size=256M",))
    try:
        session = server.connect()
        session.query((folder / "shop.dump").read_text())
        session.close()
        with _proxy(folder, f"mysql://root@127.0.0.1:{server.port}/d?tls=disable") as address:
            _script(folder, transactions, "--dsn", f"mysql://password_user:open-sesame@{address}/d?tls=disable")
    finally:
        server.stop()


@contextmanager
def _proxy(folder: Path, to: str) -> Iterator[str]:
    """Yields the address of a proxy, which writes `shop.capture` at the end."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    words = _command("capture", "--listen", address, "--to", to, "-o", "shop.capture")
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        while address.encode() not in process.stderr.readline():
            assert process.poll() is None
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def _original(folder: Path, transactions: int) -> float:
    """Returns transactions per second."""
    return float(_script(folder, transactions, "--engine", "mariadb", "--dump", "shop.dump")["throughput"])


def _script(folder: Path, transactions: int, *words: str) -> Mapping[str, Any]:
    each = ("--clients", str(CLIENTS), "--transactions", str(transactions), "--warmup", "0s")
    return _run(folder, "script", "work.sql", "--protocol", "prepared", *each, *words)


def _replay(folder: Path, transactions: int, metrics: dict[str, Any]) -> float:
    # The capture also contains the statements with which ironbench reads the settings of the recorded server.
    only = ("--with", "file=shop.capture", "--with", "only=statement:begin*,statement:delete*")
    words = ("--with", "mode=fast", "--engine", "mariadb", "--dump", "shop.dump")
    metrics.update(_run(folder, "capture", *only, *words))
    # One execution of the script may be several transactions of the capture.
    return transactions * CLIENTS / (metrics["transactions"] / metrics["throughput"])


def _run(folder: Path, *words: str) -> Mapping[str, Any]:
    done = subprocess.run(
        _command("run", *words, "--no-observe", "--results", "results"), cwd=folder, capture_output=True, text=True
    )
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr)
    newest = max((folder / "results" / "trials").glob("*/record.json"), key=lambda path: path.stat().st_mtime_ns)
    metrics: Mapping[str, Any] = json.loads(newest.read_text())["metrics"]
    return metrics


def _command(*words: str) -> list[str]:
    return [sys.executable, "-c", "from ironbench.start import main; main()", *words]
