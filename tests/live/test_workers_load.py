"""Large data loaded by workers, piece by piece: the same rows as by one process, whatever happens to a worker."""

from __future__ import annotations

import io
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer
from user import User
from workload_trial import Served

from ironbench.host import processes
from ironbench.model.system import Load
from ironbench.printer import Printer
from ironbench.trial.cluster.worker_pool import WorkerPool
from ironbench.trial.load import pieces, prepare
from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.rows import Copiers
from ironbench.workloads import tpch_tables

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("ray"), pytest.mark.timeout(120)]


def load(session: Any, sf: str, copiers: Copiers | None = None, told: io.StringIO | None = None) -> Loaded:
    dataset = tpch_tables.dataset("postgres", {"sf": sf, "references": "no"})
    printer = Printer(io.StringIO(), told or io.StringIO())
    return prepare.fill(session, dataset, 2, printer, own_server=False, copiers=copiers)


def checksums(session: Any) -> dict[str, str | None]:
    """Returns the checksums of all rows of each table, independent of their order."""
    text = "select md5(string_agg(md5(t::text), '' order by t::text)) from {table} t"
    return {table: session.query(text.format(table=table))[0][0] for table in tpch_tables.TABLES}


class Once:
    """Calls something when half of the pieces are done."""

    def __init__(self, copiers: Copiers, then: Callable[[], None]) -> None:
        self._copiers, self._then = copiers, then
        self.count, self.here, self.begin = copiers.count, copiers.here, copiers.begin
        self.attempts = 0

    def copied(self, plan: dict[str, Any], show: Callable[[int, int], None]) -> dict[str, Any]:
        self.attempts += 1
        if self.attempts == 1:
            threading.Thread(target=self._then, daemon=True).start()
        return self._copiers.copied(plan, show)


@pytest.mark.long
def test_rows_that_workers_load_are_those_that_one_process_loads(served: Served, raw_server: RawServer) -> None:
    told = io.StringIO()
    with WorkerPool(Printer(io.StringIO(), io.StringIO())) as pool:
        loaded = load(served, "0.01", pool.copiers(Load(clients=1, workers=2)), told)
    assert "by 2 connections of 2 workers" in told.getvalue()
    assert loaded.rows == 86_805 and loaded.connections == 2 and not loaded.resumed
    theirs = checksums(served)
    for table in (*tpch_tables.TABLES, "ironbench_load"):
        served.query(f"drop table {table}")
    load(served, "0.01")
    assert checksums(served) == theirs


def test_a_plan_of_a_large_load_tells_pieces_time_and_memory(
    tmp_path: Path, raw_server: RawServer, database: str
) -> None:
    user = User(tmp_path / "user")
    page = (Path(__file__).parents[2] / "docs" / "how" / "large-data.md").read_text()
    (text,) = (one for one in re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "tpch" in one)
    dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
    text = text.replace('cluster = "auto"\n', "").replace("postgresql://bench@db.example:5432/bench", dsn)
    (user.home / "large.toml").write_text(text)
    told = user("lab", "plan", "large.toml")
    assert told.code == 0, told.stderr
    rows, pieces, workers = "86,612,150,030 rows", "158,655 pieces", "32 workers"
    assert re.search(f"{rows} are loaded in {pieces} by {workers}", told.stdout), told.stdout
    (one,) = user("lab", "plan", "large.toml", "--json").document["loads"]
    assert one["workers"] == 32 and one["made_s"] > 1000 and one["memory_bytes"] > 300e6


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_load_that_loses_a_worker_goes_on_and_has_every_row_once(served: Served, number: signal.Signals) -> None:
    load(served, "0.2")
    theirs = checksums(served)
    for table in (*tpch_tables.TABLES, "ironbench_load"):
        served.query(f"drop table {table}")

    def strike() -> None:
        other = served.reopened()
        while not pieces.LoadedPieces(other, "tpch").known() or len(pieces.LoadedPieces(other, "tpch").rows()) < 2:  # type: ignore[arg-type]
            time.sleep(0.01)
        workers = [one for one in processes.below(os.getpid()) if processes.command(one.pid).startswith("ray::Worker")]
        workers[0].signal(number)
        other.close()

    with WorkerPool(Printer(io.StringIO(), io.StringIO())) as pool:
        copiers = pool.copiers(Load(clients=1, workers=2))
        assert copiers is not None
        struck = Once(copiers, strike)
        loaded = load(served, "0.2", struck)
    assert struck.attempts == 2 and loaded.resumed
    assert checksums(served) == theirs
    assert load(served, "0.2").reused


@pytest.mark.long
def test_queries_are_asked_by_one_process_of_data_that_workers_have_loaded(
    tmp_path: Path, raw_server: RawServer, database: str
) -> None:
    user = User(tmp_path / "user")
    dsn = f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}"
    told = user.measured("run", "tpch", "--dsn", dsn, "--with", "sf=0.01", "--workers", "2")
    assert "by 2 connections of 2 workers" in told.stderr
    assert "workers" not in user.records()[-1]["metrics"], "no trial was driven by them"
