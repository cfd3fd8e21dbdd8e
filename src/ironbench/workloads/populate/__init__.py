"""The `populate` workload: many connections fill a table with wide rows. Guide: docs/workloads/populate.md."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ironbench import engines
from ironbench.engines.administration import WriteCounters, checkpoint
from ironbench.errors import InputError, written
from ironbench.host import space
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.workloads.base import Dataset, Option, Workload, one_row
from ironbench.workloads.commit_check import wait_for_clients
from ironbench.workloads.wide_table import GB, ROW, TABLE, WideTable

LEAST_BYTES_PER_S = 5e6
"""Assumed rate in bytes per second if each commit contains few rows. This is the rate of a slow disk."""
USUAL_BYTES_PER_S = {"rows": 20e6, "batch": 50e6, "copy": 80e6}
"""Typical rates in bytes per second. The rates were measured on a small virtual machine, and only their order of
magnitude is meaningful."""


class Populate(Workload):
    name = "populate"
    doc = (
        "Several connections fill an empty table with wide rows. Each transaction ends with a "
        "commit, and a trial ends with the last row."
    )
    scores = ("population_bytes_per_s", "throughput")
    needs = ("scripts", "transactions", "population")
    usual_warmup_s = 0.0
    options = (
        GB,
        ROW,
        Option(
            "keys",
            "identity",
            "values of the primary key; identity: the engine generates ascending values; random: random values",
            choices=("identity", "random"),
        ),
        Option(
            "method",
            "batch",
            "how rows are inserted; rows: one INSERT per row; batch: many rows per INSERT; copy: "
            "COPY, if the engine supports COPY",
            choices=("rows", "batch", "copy"),
        ),
        Option("batch", "100", "number of rows per INSERT for method=batch", lowest=1, highest=6000),
        Option("commit", "1000", "number of rows per commit", lowest=1, highest=100_000_000),
    )

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return ("population_elapsed_s", "population_settled_s")

    def core_work(self, engine: str, options: Mapping[str, str]) -> Mapping[str, Any]:
        return {
            "kind": "populate",
            "table": wide(options).core_parameters(),
            "method": options["method"],
            "commit": int(options["commit"]),
            "batch": int(options["batch"]),
        }

    def units(self, options: Mapping[str, str]) -> int:
        return -(-wide(options).rows // int(options["commit"]))

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        return None

    def expected_s(self, engine: str, options: Mapping[str, str]) -> float:
        rate = USUAL_BYTES_PER_S[options["method"]]
        per_commit = int(options["commit"]) * int(options["row"])
        return wide(options).value_bytes / (rate if per_commit > 100_000 else LEAST_BYTES_PER_S)

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        """Raises InputError if the engine does not support COPY, if there are fewer commits than clients, or if an
        option has no effect."""
        if choice.options["method"] == "copy" and not engines.get(system.engine).can("copy"):
            raise InputError(
                written("workload.with", "method=copy"),
                f"{system.engine} has no COPY stream",
                f"use {written('workload.with', 'method=batch')} {written('workload.with', 'batch=1000')}",
            )
        refused = {
            written("load.duration"): load.duration_s is not None,
            written("load.transactions"): load.transactions is not None,
            written("load.rate"): load.rate is not None or load.rate_share is not None,
            written("load.think_time"): load.think_time_s > 0,
            written("load.warmup"): load.warmup_s > 0 or load.warmup_auto,
            written("load.cache"): bool(load.cache),
        }
        for option, value in refused.items():
            if value:
                cause = "has no effect: populate starts with an empty table and ends when all rows are inserted"
                raise InputError(
                    option, cause, f"remove it; {written('workload.with', 'gb=…')} sets the amount of data"
                )
        commits = self.units(choice.options)
        if commits < load.clients:
            raise InputError(
                written("load.clients", load.clients),
                f"only {commits} commits are needed for all rows, so some clients would be idle",
                f"use more rows ({written('workload.with', 'gb=…')}), or fewer rows per commit "
                f"({written('workload.with', 'commit=…')})",
            )

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return None if not engines.get(engine).can("data") else wide(options).dataset(engine, loaded=False)

    def estimate_bytes(self, engine: str, options: Mapping[str, str]) -> int:
        """Returns the size of data and WAL at the end of a trial."""
        if not engines.get(engine).can("data"):
            return 0
        stored = wide(options).stored_bytes(engine)
        return stored + engines.get(engine).traits.costs.log_of(stored * 2)

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        """Empties the table. Raises InputError if there is not enough space."""
        for statement in engines.get(session.engine).traits.dialect.emptied(TABLE):
            session.query(statement)
        directory = session.directories().get("data")
        if directory is not None:
            space.require(directory, wide(options).stored_bytes(session.engine), "the new rows")
        return _counters_before(session)

    def measured(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> Mapping[str, float]:
        table, elapsed_s = wide(options), float(summary["elapsed_s"])
        metrics = {
            "population_elapsed_s": elapsed_s,
            "population_rows_per_s": table.rows / elapsed_s,
            "population_bytes_per_s": table.value_bytes / elapsed_s,
        }
        return metrics | (_log_and_debt(session, before, table, elapsed_s) if before is not None else {})

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Checks that every row was stored as generated. Not checked if the trial was stopped early."""
        return () if summary["cut_short"] else wide(options).checks(session)


def wide(options: Mapping[str, str]) -> WideTable:
    return WideTable.of(options, options["keys"])


REPORT_S = 1.0
"""Maximum time in seconds until the server's statistics include a checkpoint."""


def _counters_before(session: Session) -> WriteCounters | None:
    """Requests a checkpoint and then reads the counters, so that they include no backlog of earlier writes. Returns
    None if the engine has no such counters."""
    administration = engines.get(session.engine).administration
    if administration.written(session) is None:
        return None
    checkpoint(session, engines.get(session.engine).traits.dialect)
    return administration.written(session)


def _log_and_debt(session: Session, before: WriteCounters, table: WideTable, elapsed_s: float) -> dict[str, float]:
    """Returns metrics of WAL and of writes that were left to a checkpoint. The keys are names in the catalogue."""
    engine = engines.get(session.engine)
    log_bytes = _written(session).log_bytes
    owed_log = engine.administration.log_since_checkpoint(session, log_bytes)
    wait_for_clients(session)
    end = _written(session)
    written = log_bytes - before.log_bytes
    metrics = {
        "population_log_bytes": float(written),
        "population_log_share": written / table.value_bytes,
        "population_log_flushes": float(end.log_flushes - before.log_flushes),
        "population_checkpoints": float(end.checkpoints - before.checkpoints),
        "population_stored_bytes": float(one_row(session, engine.traits.dialect.size([TABLE]))[0]),
        "debt_log_bytes": float(owed_log),
    }
    began = time.perf_counter()
    if not checkpoint(session, engine.traits.dialect):
        return metrics
    settle_s = time.perf_counter() - began
    return metrics | {
        "debt_data_bytes": float(_reported(session, end).checkpoint_bytes - end.checkpoint_bytes),
        "debt_settle_s": settle_s,
        "population_settled_s": elapsed_s + settle_s,
    }


def _reported(session: Session, before: WriteCounters) -> WriteCounters:
    """Waits until the counters include the latest checkpoint, for at most `REPORT_S`. Returns the counters."""
    deadline = time.monotonic() + REPORT_S
    while (now := _written(session)).checkpoints <= before.checkpoints and time.monotonic() < deadline:
        time.sleep(0.02)
    return now


def _written(session: Session) -> WriteCounters:
    counters = engines.get(session.engine).administration.written(session)
    assert counters is not None, "the engine stopped counting"
    return counters


WORKLOAD = Populate()
