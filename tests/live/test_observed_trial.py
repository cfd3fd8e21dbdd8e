"""One trial driven by the core and sampled by its observer thread."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from raw_server import RawServer

from ironbench import _core, catalogue
from ironbench.model.driven import Driven
from ironbench.trial import observe

pytestmark = [pytest.mark.live, pytest.mark.alone]


class Served:
    engine = "postgres"

    def __init__(self, server: RawServer, connection: Any) -> None:
        self._server, self._connection = server, connection

    def query(self, sql: str) -> Any:
        return self._connection.query(sql)

    def processes(self) -> list[int]:
        assert self._server.process is not None
        return [self._server.process.pid]

    def directories(self) -> dict[str, str]:
        return {"data": str(self._server.directory)}


def test_a_trial_is_watched_and_its_cpu_time_shared_out(raw_server: RawServer, database: str) -> None:
    connection = raw_server.connect(database=database)
    connection.query(
        "create table t (a int primary key, b int); insert into t select n, 0 from generate_series(1, 100) n"
    )
    sources = observe.sources(Served(raw_server, connection))  # type: ignore[arg-type]
    plan = {
        "engine": {
            "kind": "postgres",
            "connection": raw_server.connection(database=database),
            "protocol": "prepared",
            "io": "auto",
        },
        "scripts": [
            {"name": "change", "text": "\\set n random(1, 100)\nupdate t set b = b + 1 where a = :n;\n", "weight": 1}
        ],
        "variables": [],
        "clients": 3,
        "threads": 1,
        "seed": 1,
        "schedule": {"kind": "closed", "think_time_s": 0.0},
        "stop": {"duration_s": 3.0},
        "warmup_s": 0.5,
        "max_tries": 1,
        "observers": [
            *({"name": s.name, "kind": s.kind, "target": s.target, "period_s": s.period_s} for s in sources),
            # Uses a separate backend, which belongs to no client.
            {"name": "checkpoints.request", "kind": "request", "target": "checkpoint", "period_s": 1.0},
        ],
    }
    result = _core.drive(json.dumps(plan).encode())
    connection.close()
    summary = json.loads(result.summary)
    driven = Driven("2026-01-01T00:00:00+00:00", alive=True, summary=summary, samples=result.samples)
    observation, budget = observe.observed(driven)

    # If other programs use the CPU, some samples are late, which is reported.
    late = "samples were late and were skipped"
    assert [note for note in summary["observer_notes"] if late not in note] == []
    metrics = observation.metrics
    for name in metrics:
        catalogue.metric(name)
    assert metrics["rows_changed_per_s"] == pytest.approx(summary["transactions"] / 3.0, rel=0.5)
    assert metrics["backends_active"] + metrics["backends_idle"] == pytest.approx(3.0, abs=0.3)
    assert metrics["engine_cpu_s"] > 0
    assert metrics["wal_bytes_per_transaction"] > 0
    assert metrics["writing_transactions_per_s"] == pytest.approx(summary["transactions"] / 3.0, rel=0.5)
    assert budget is not None
    assert sum(getattr(budget, part.name) for part in fields(budget)) == pytest.approx(1.0, abs=1e-4)
    assert budget.server > 0 and budget.client > 0 and budget.observers > 0
