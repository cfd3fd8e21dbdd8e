"""Compares restoring a dump of 1 GB before each trial with a plain copy of its files and with CREATE DATABASE …
TEMPLATE.

Targets: at most 1.1 and 1.2 times their duration, and equal checksums of every table after 20 restores with changes in
between. Needs about 12 GB in the directory for temporary files (TMPDIR), and 25 minutes. `IRONBENCH_BENCH_SCALE=7` uses
70 MB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import StringIO
from pathlib import Path

from bench.figures import at_most, equal, report
from bench.pairs import interleaved, ratio
from bench.series import number_from_environment
from ironbench import engines, workloads
from ironbench.host import copies
from ironbench.model.own_data import OwnData
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Cell, Choice, Layout, Load, Setup, System
from ironbench.printer import Printer
from ironbench.trial.load import databases, own, restore, snapshot
from ironbench.trial.load.databases import TrialDatabases
from ironbench.trial.load.source import DataSource
from tests.live.raw_server import RawServer, binary

SCALE = 100
"""Scale of pgbench's tables: 1.5 GB with keys, 1.0 GB as an uncompressed dump."""
PAIRS = 15
RESTORES = 20
TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")
SETTINGS = ("fsync=on", "shared_buffers=128MB", "max_wal_size=4GB")


def main() -> None:
    scale, restores = (
        number_from_environment("IRONBENCH_BENCH_SCALE", SCALE),
        number_from_environment("IRONBENCH_BENCH_RESTORES", RESTORES),
    )
    with _home() as home, RawServer(*SETTINGS) as server:
        at = ["-h", server.host, "-p", str(server.port), "-U", "postgres"]
        subprocess.run([binary("createdb"), *at, "shop"], check=True)
        subprocess.run([binary("pgbench"), *at, "-i", "-q", "-s", str(scale), "shop"], check=True, capture_output=True)
        dump = home / "shop.dump"
        subprocess.run([binary("pg_dump"), *at, "-Fc", "-Z0", "-f", str(dump), "shop"], check=True)
        report("  dump, MB", dump.stat().st_size / 1e6)
        _on_a_server_of_ours(home, dump, restores)
        _on_a_server_of_theirs(server, at, dump)


def _on_a_server_of_ours(home: Path, dump: Path, restores: int) -> None:
    setup = _setup(System("postgres", "bench", layout=Layout(str(home / "data"))), dump)
    source = snapshot.source_ready(setup, Secrets(), _unheard())
    assert source.folder is not None
    first = _checksums(setup, source)
    target = home / "plain"

    def plain() -> None:
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", str(source.folder), str(target)], check=True)
        subprocess.run(["sync", "-f", str(target)], check=True)

    ours, theirs = (_timed(work, source.folder) for work in (lambda: restore.restored(setup, source), plain))
    of_ours, of_cp = interleaved(PAIRS, ours, theirs)
    _report_ratio("restore of a dump / a plain copy of the same files", of_ours, of_cp, 1.1)
    for _ in range(restores - 1):
        with _restored(setup, source) as session:
            session.query("delete from pgbench_accounts where aid % 50 = 0; update pgbench_tellers set tbalance = 1")
    differ = sum(a != b for a, b in zip(first, _checksums(setup, source), strict=True))
    report(f"tables whose checksum differs after {restores} restores", differ, equal(0))


def _on_a_server_of_theirs(server: RawServer, at: list[str], dump: Path) -> None:
    address = f"postgresql://postgres@/postgres?host={server.host}&port={server.port}"
    setup = _setup(System("postgres", "bench", dsn=address), dump)
    assert setup.choice.data is not None
    source = databases.database_ready(setup, setup.choice.data, Secrets(), _unheard())
    psql = [binary("psql"), "-X", "-q", *at, "-d", "postgres"]

    def plain() -> None:
        made = ["-c", "drop database if exists peer", "-c", f"create database peer template {source.database}"]
        subprocess.run([*psql, *made], check=True, capture_output=True)

    with closing(TrialDatabases()) as trials:
        of_ours, of_psql = interleaved(PAIRS, _timed(lambda: trials.restored(setup, source)), _timed(plain))
    _report_ratio("restore of a dump on a running server / CREATE DATABASE TEMPLATE", of_ours, of_psql, 1.2)


def _setup(system: System, dump: Path) -> Setup:
    system, _ = engines.get(system.engine).validated(system, 4)
    data = own.identified(OwnData(dump=str(dump)), system, workloads.get("script"))
    return Setup(Cell("bench", Load()), system, Choice("script", data=data))


def _timed(work: Callable[[], object], source: Path | None = None) -> Callable[[], float]:
    """Times `work`. `source`: files that are evicted from the page cache first, so that both sides read them from the
    device. In a lab, a restore also leaves none of them in the page cache."""

    def timed() -> float:
        os.sync()  # earlier writes must not be included
        if source is not None:
            copies.evict(source)
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return timed


def _report_ratio(what: str, of_ours: list[float], of_peer: list[float], most: float) -> None:
    found = ratio(of_ours, of_peer)
    report(what, found, at_most(most))
    report("  seconds", f"{', '.join(f'{s:.2f}' for s in of_ours)} against {', '.join(f'{s:.2f}' for s in of_peer)}")


@contextmanager
def _restored(setup: Setup, source: DataSource) -> Iterator[Session]:
    restore.restored(setup, source)
    with engines.running(setup.system, Secrets(), 4) as session:
        yield session


def _checksums(setup: Setup, source: DataSource) -> list[str | None]:
    with _restored(setup, source) as session:
        return [session.query(f"select sum(hashtext(t::text)::bigint) from {name} t")[0][0] for name in TABLES]


def _unheard() -> Printer:
    return Printer(StringIO(), StringIO())


@contextmanager
def _home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ironbench-own-data-") as folder:
        before = os.environ.get("IRONBENCH_DATA")
        os.environ["IRONBENCH_DATA"] = f"{folder}/kept"
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["IRONBENCH_DATA"]
            else:
                os.environ["IRONBENCH_DATA"] = before
