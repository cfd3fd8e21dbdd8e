"""Compares loading the tables of the TPC-C-derived workload with `go-tpc tpcc prepare` and with tools that load ready
files. Each program also checks the data of the other.

Needs `go-tpc` on the path (go install github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12), MariaDB's server and its client
program `mariadb` (Debian: mariadb-server-core, mariadb-client-core). `IRONBENCH_BENCH_WAREHOUSES=2` uses another number
of warehouses.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import tpch_load, tpch_mariadb
from bench.figures import at_most, report
from bench.pairs import interleaved, ratio
from bench.peers import postgres
from bench.tpch_load import COPY, WORKERS, Took, scripts_of
from bench.tpch_mariadb import LOAD
from ironbench import engines
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.model.session import Session
from ironbench.model.system import Layout, System
from ironbench.printer import Printer
from ironbench.trial.load import Loaded, prepare
from ironbench.workloads import Dataset
from ironbench.workloads.tpcc import checks, tables
from tests.live.raw_mysql import RawMysql
from tests.live.raw_server import RawServer, free_port

PAIRS = 4
WAREHOUSES = os.environ.get("IRONBENCH_BENCH_WAREHOUSES", "10")
OPTIONS = {"warehouses": WAREHOUSES, "references": "no"}


@dataclass(frozen=True, slots=True)
class Served:
    """A server that both programs reach over TCP, so that neither has an advantage."""

    engine: str
    dsn: str
    """DSN that contains `{database}` in place of the database's name."""
    flags: tuple[str, ...]
    """go-tpc's options for this server, without the database."""
    query: Callable[[str], object]


def main() -> None:
    with postgres_served() as served:
        _with_go_tpc(served)
    with mariadb_served() as served:
        _with_go_tpc(served)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        _files_into_postgres(Path(folder))
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        _files_into_mariadb(Path(folder))


def _with_go_tpc(served: Served) -> None:
    """Compares complete loads, with keys and checks, and then lets each program check the other's data."""
    ours, theirs = interleaved(PAIRS, lambda: _by_us(served), lambda: _by_go_tpc(served))
    report(
        f"{served.engine}, {WAREHOUSES} warehouses: our load / go-tpc tpcc prepare ({min(theirs):.0f} s)",
        ratio(ours, theirs),
        at_most(0.3, "upper end ≤ 0.3"),
    )
    report("  seconds of ironbench, smallest", min(ours))
    # The databases of the last pair still exist.
    found = subprocess.run([*go_tpc(served, "ours"), "check"], capture_output=True, text=True, check=False)
    report("  our data: failed checks of go-tpc tpcc check", _failed(found), at_most(0))
    with opened(served, "theirs") as session:
        violated = [check.name for check in checks.after_load(session, int(WAREHOUSES)) if not check.passed]
        report("  go-tpc's data: violated conditions", len(violated), at_most(0), ", ".join(violated) or "0")
        reused = filled(session).reused
        report("  go-tpc's data: refused by ironbench", int(not reused), at_most(0))


def _failed(found: subprocess.CompletedProcess[str]) -> int:
    """Returns the number of failed checks; a program that ended with an error counts as one."""
    lines = (found.stdout + found.stderr).splitlines()
    return max(sum("fail" in line.lower() for line in lines), int(found.returncode != 0))


def _by_us(served: Served) -> float:
    empty(served, "ours")
    begin = time.monotonic()
    with opened(served, "ours") as session:
        filled(session)
        return time.monotonic() - begin


def _by_go_tpc(served: Served) -> float:
    empty(served, "theirs")
    begin = time.monotonic()
    subprocess.run([*go_tpc(served, "theirs"), "prepare"], check=True, capture_output=True)
    return time.monotonic() - begin


def empty(served: Served, database: str) -> None:
    served.query(f"drop database if exists {database}")
    served.query(f"create database {database}")


def filled(session: Session) -> Loaded:
    silent = Printer(io.StringIO(), io.StringIO())
    return prepare.fill(session, tables.dataset(session.engine, OPTIONS), WORKERS, silent, own_server=False)


@contextmanager
def opened(served: Served, database: str) -> Iterator[Session]:
    system = System(served.engine, "bench", dsn=served.dsn.format(database=database))
    system, secrets = engines.get(served.engine).validated(system, WORKERS)
    with engines.running(system, secrets, WORKERS) as session:
        yield session


def go_tpc(served: Served, database: str) -> list[str]:
    found = shutil.which("go-tpc")
    if found is None:
        raise RuntimeError("go-tpc is not on the path: go install github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12")
    return [found, "tpcc", *served.flags, "-D", database, "--warehouses", WAREHOUSES, "-T", str(WORKERS)]


@contextmanager
def postgres_served() -> Iterator[Served]:
    with RawServer("shared_buffers=1GB", "max_wal_size=4GB", "maintenance_work_mem=256MB") as server:
        connection = server.connect()
        flags = ("-d", "postgres", "-H", "127.0.0.1", "-P", str(server.port), "-U", "postgres")
        address = f"postgresql://postgres@127.0.0.1:{server.port}"
        yield Served(
            "postgres", address + "/{database}", (*flags, "--conn-params", "sslmode=disable"), connection.query
        )
        connection.close()


@contextmanager
def mariadb_served() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        settings = ["--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=2"]
        server = RawMysql(Path(folder), free_port(), [*settings, "--performance-schema=OFF"])
        try:
            flags = ("-d", "mysql", "-H", "127.0.0.1", "-P", str(server.port), "-U", "root")
            yield Served("mariadb", f"mysql://root@127.0.0.1:{server.port}" + "/{database}", flags, server.query)
        finally:
            server.stop()


def _files_into_postgres(folder: Path) -> None:
    dataset = tables.dataset("postgres", OPTIONS)
    with postgres(8, "script", {}) as session:
        tpch_load.by_us(session, dataset)  # the first load extends the server's files
        scripts = scripts_of(dataset, folder, COPY)
        ours, files = interleaved(
            PAIRS,
            lambda: tpch_load.by_us(session, dataset),
            lambda: tpch_load.by_psql(session, dataset, scripts),
        )
    _said_files(f"PostgreSQL, {WAREHOUSES} warehouses: our rows / {WORKERS} psql \\copy of ready files", ours, files)


def _files_into_mariadb(folder: Path) -> None:
    dataset: Dataset = tables.dataset("mariadb", OPTIONS)
    system = System("mariadb", "bench", {}, Layout(data=f"{folder}/data"), memory_bytes=1 << 30)
    system, secrets = engines.get("mariadb").validated(system, WORKERS)
    scripts = scripts_of(dataset, folder, LOAD)
    with engines.running(system, secrets, WORKERS) as session:
        assert isinstance(session, MariadbSession)
        tpch_mariadb.by_load_data(session, dataset, scripts)  # also brings the files into the page cache
        ours, files = interleaved(
            PAIRS,
            lambda: tpch_mariadb.by_us(session, dataset),
            lambda: tpch_mariadb.by_load_data(session, dataset, scripts),
        )
    _said_files(f"MariaDB, {WAREHOUSES} warehouses: our rows / {WORKERS} LOAD DATA LOCAL of ready files", ours, files)


def _said_files(what: str, ours: list[Took], files: list[Took]) -> None:
    """Compares only the copying of rows, because keys are not created when ready files are loaded."""
    report(what, ratio([one.elapsed_s for one in ours], [one.elapsed_s for one in files]), at_most(1.1, "≤ 1.1"))
    report("  core-seconds, ours / theirs, servers included", ratio([o.cpu_s for o in ours], [f.cpu_s for f in files]))
    report("  seconds of ironbench, smallest", min(one.elapsed_s for one in ours))


if __name__ == "__main__":
    main()
