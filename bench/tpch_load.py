"""Compares generating and loading TPC-H-derived rows with tools that load ready files, and generating with tpchgen-cli.

Needs `tpchgen-cli` on the path (cargo install tpchgen-cli, or its wheel): the same generator, which writes files.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import at_least, at_most, report
from bench.pairs import interleaved, ratio
from bench.peers import BIN, postgres
from ironbench import engines
from ironbench.engines.postgres.session import PostgresSession
from ironbench.engines.server_session import ServerSession
from ironbench.model.session import Session
from ironbench.model.system import Layout, System
from ironbench.trial.load.pieces import LoadedPieces
from ironbench.trial.load.rows import copied_in_child
from ironbench.workloads import Dataset, tpch_tables

PAIRS = 4
SCALE = "1"
WORKERS = 2
COPY = "\\copy {table} from '{path}'\n"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
WRITE = """
import sys
from ironbench import _core
_core.write_rows(sys.stdin.buffer.read(), sys.argv[1], int(sys.argv[2]), sys.argv[3])
"""
FROM_PARQUET = """
import sys, time
import duckdb
folder, path, threads = sys.argv[1:]
database = duckdb.connect(path, config={"threads": threads})
for table in ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"):
    database.execute(f"create table {table} as select * from '{folder}/{table}.parquet'")
database.execute("checkpoint")
database.close()
"""


@dataclass(frozen=True, slots=True)
class Took:
    """Wall-clock and CPU time of one load."""

    elapsed_s: float
    cpu_s: float


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        _on_postgres(Path(folder))
    _generation()
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        _on_duckdb(Path(folder))


def tpch_dataset(engine: str, scale: str = SCALE) -> Dataset:
    return tpch_tables.dataset(engine, {"sf": scale, "indexes": "no"})


def _generation() -> None:
    """Compares the rows per second of both generators, including the creation of the text pool."""
    rows = tpch_dataset("postgres").rows
    ours, theirs = interleaved(PAIRS, _made_by_us, _made_by_them)
    report(
        f"generation, rows/s by {WORKERS} threads, to tpchgen-cli ({rows / min(theirs) / 1e6:.2f} M rows/s)",
        ratio(theirs, ours),
        at_least(0.9, "lower end ≥ 0.9"),
    )


def _made_by_us() -> float:
    plan = load_plan({"kind": "null"}, tpch_dataset("postgres"))
    begin = time.monotonic()
    copied_in_child(json.dumps(plan).encode(), lambda *_: None)
    return time.monotonic() - begin


def _made_by_them() -> float:
    command = [_tpchgen(), "tbl", "-s", SCALE, "--num-threads", str(WORKERS), "--stdout"]
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def _on_postgres(folder: Path) -> None:
    dataset = tpch_dataset("postgres")
    with postgres(8, "script", {}) as session:
        by_us(session, dataset)
        _said_memory("PostgreSQL")  # before any other child process was as large
        scripts = scripts_of(dataset, folder, COPY)
        ours, psql = interleaved(PAIRS, lambda: by_us(session, dataset), lambda: by_psql(session, dataset, scripts))
    report(
        f"PostgreSQL, sf={SCALE}, no indexes: our time, generation included / {WORKERS} psql \\copy of ready files",
        ratio([one.elapsed_s for one in ours], [one.elapsed_s for one in psql]),
        at_most(1.3, "upper end ≤ 1.3"),
    )
    report("  core-seconds, ours / psql's, servers included", ratio([o.cpu_s for o in ours], [p.cpu_s for p in psql]))
    report("  core-seconds of ironbench, smallest", min(one.cpu_s for one in ours))


def _on_duckdb(folder: Path) -> None:
    dataset = tpch_dataset("duckdb")
    ours, parquet = interleaved(PAIRS, lambda: _into_duckdb(dataset, folder), lambda: _by_parquet(folder))
    report(
        f"DuckDB, sf={SCALE}: our time / generation to Parquet + create table as",
        ratio([one.elapsed_s for one in ours], [one.elapsed_s for one in parquet]),
        at_most(0.85, "upper end ≤ 0.85"),
    )
    report("  core-seconds, ours / theirs", ratio([one.cpu_s for one in ours], [one.cpu_s for one in parquet]))


def _said_memory(engine: str) -> None:
    """Reports the peak memory of the largest child so far, which is the loader, plus the peak memory of this
    process."""
    peak_kb = (
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    )
    report(f"memory of loader and harness, {engine} excluded, MB", peak_kb * 1024 / 1e6, at_most(450))


def load_plan(target: dict[str, object], dataset: Dataset, pieces: LoadedPieces | None = None) -> dict[str, object]:
    plan: dict[str, object] = {"engine": target, "generator": dataset.generator, "connections": WORKERS}
    return plan | ({"done": [], "note": pieces.note} if pieces else {})


def empty_tables(session: Session, dataset: Dataset) -> LoadedPieces:
    for table in dataset.tables:
        session.query(f"drop table if exists {table}")
    for statement in dataset.schema:
        session.query(statement)
    pieces = LoadedPieces(session, dataset.name)
    pieces.begin()
    return pieces


def timed(work: Callable[[], object], server: int | None) -> Took:
    before = _cpu(server)
    begin = time.monotonic()
    work()
    return Took(time.monotonic() - begin, _cpu(server) - before)


def _cpu(server: int | None) -> float:
    """Returns the CPU seconds of children that have ended, and of a server with its backends."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + (0.0 if server is None else _server_cpu(server))


def _server_cpu(postmaster: int) -> float:
    """Returns the CPU seconds of the postmaster, of backends that it has waited for, and of running backends
    (proc_pid_stat(5))."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if process.name == str(postmaster):
            ticks += sum(int(word) for word in words[11:15])
        elif words[1] == str(postmaster):
            ticks += int(words[11]) + int(words[12])
    return ticks / _TICKS_PER_S


def by_us(session: PostgresSession, dataset: Dataset) -> Took:
    pieces = empty_tables(session, dataset)
    session.query("checkpoint")
    return loaded(session, dataset, pieces)


def loaded(session: ServerSession[Any, Any], dataset: Dataset, pieces: LoadedPieces) -> Took:
    plan = json.dumps(load_plan(session.target(), dataset, pieces)).encode()
    return timed(lambda: copied_in_child(plan, lambda *_: None), session.processes()[0])


def by_psql(session: PostgresSession, dataset: Dataset, scripts: Sequence[Path]) -> Took:
    """Loads with one concurrent psql for each script."""
    empty_tables(session, dataset)
    session.query("checkpoint")
    connection = session.target()["connection"]
    command = [
        str(BIN / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", connection["host"], "-p", str(connection["port"]),
        "-U", connection["user"], "-d", connection["database"],
    ]  # fmt: skip

    return together([[*command, "-f", str(script)] for script in scripts], session.processes()[0])


def together(commands: Sequence[Sequence[str]], server: int) -> Took:
    """Runs all commands at the same time."""

    def work() -> None:
        running = [subprocess.Popen(command) for command in commands]
        failed = [process for process in running if process.wait()]
        if failed:
            raise RuntimeError(f"{commands[0][0]} failed")

    return timed(work, server)


def scripts_of(dataset: Dataset, folder: Path, command: str) -> list[Path]:
    """Writes the rows as text, with each table split into one part per connection, and a script for each connection
    that loads its parts.

    `command`: a line of the script, with `{table}` and `{path}`.
    """
    generator = json.dumps(dataset.generator).encode()
    scripts = [folder / f"{worker}.sql" for worker in range(WORKERS)]
    commands: list[list[str]] = [[] for _ in scripts]
    for table in dataset.tables:
        whole = folder / table
        subprocess.run([sys.executable, "-c", WRITE, table, str(WORKERS), str(whole)], input=generator, check=True)
        subprocess.run(["split", "-d", "-n", f"l/{WORKERS}", whole, f"{whole}."], check=True)
        whole.unlink()
        for worker, lines in enumerate(commands):
            lines.append(command.format(table=table, path=f"{whole}.{worker:02}"))
    for script, lines in zip(scripts, commands, strict=True):
        script.write_text("".join(lines))
    return scripts


def _into_duckdb(dataset: Dataset, folder: Path) -> Took:
    data = folder / "ours"
    shutil.rmtree(data, ignore_errors=True)
    engine = engines.get("duckdb")
    system, secrets = engine.validated(System("duckdb", "bench", layout=Layout(str(data))), WORKERS)
    with engines.running(system, secrets, WORKERS) as session:
        pieces = empty_tables(session, dataset)
        session.query("checkpoint")
        plan = json.dumps(load_plan(session.target(), dataset, pieces)).encode()
        session.restart()
        return timed(lambda: copied_in_child(plan, lambda *_: None), None)


def _by_parquet(folder: Path) -> Took:
    data, files = folder / "theirs.duckdb", folder / "parquet"
    data.unlink(missing_ok=True)
    shutil.rmtree(files, ignore_errors=True)
    generate = [_tpchgen(), "parquet", "-s", SCALE, "--num-threads", str(WORKERS), "--output-dir", str(files)]
    create = [sys.executable, "-c", FROM_PARQUET, str(files), str(data), str(WORKERS)]
    return timed(
        lambda: [subprocess.run(one, check=True, stdout=subprocess.DEVNULL) for one in (generate, create)], None
    )


def _tpchgen() -> str:
    found = shutil.which("tpchgen-cli")
    if found is None:
        raise RuntimeError("tpchgen-cli is not on the path: cargo install tpchgen-cli, or its wheel")
    return found
