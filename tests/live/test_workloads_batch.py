"""The batch workload on real engines: its rules hold, and are broken by what breaks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ironbench.cli import main

pytestmark = pytest.mark.live


def driven(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    monkeypatch.setattr("sys.argv", ["ironbench", "run", "igen-batch", *words, "--json", "--warmup", "0s"])
    with pytest.raises(SystemExit):
        main()
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found["trials"][0]


@pytest.mark.parametrize("engine", ["postgres", pytest.param("sqlite", marks=pytest.mark.long)])
def test_jobs_run_beside_each_other_and_every_rule_holds(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--engine", engine, "--data", str(tmp_path / "data"), "--results", str(tmp_path / "results")]
    trial = driven(monkeypatch, capsys, *place, "--clients", "3", "--duration", "4s", "--with", "lines=50")
    assert [check["name"] for check in trial["checks"] if not check["passed"]] == []
    assert trial["status"] in ("ok", "suspect")
    metrics = trial["metrics"]
    for job in ("post", "reprice", "summary", "age"):
        assert metrics[f"throughput{{script={job}}}"] > 0, job
    assert metrics["errors"] == 0


def test_a_ledger_that_lost_a_line_is_noticed(tmp_path: Path) -> None:
    from ironbench.workloads import get, igen_batch

    batch = get("igen-batch")
    session = _Sqlite(tmp_path)
    dataset = batch.dataset("sqlite", batch.validated({}))
    assert dataset is not None
    for statement in dataset.schema:
        session.query(statement)
    session.query("insert into batch_product values (1, 200, 0)")
    for month in range(1, 13):
        session.query(f"insert into batch_history values ({month}, {month}, 1, 2, 200, 400)")
    for statement in (*dataset.keys, *dataset.references):
        session.query(statement)
    then = igen_batch.sums(session)
    summary: dict[str, Any] = {"scripts": [], "commits": 0}
    assert all(check.passed for check in igen_batch.check(session, then, summary))
    session.query("insert into batch_history values (99, 12, 1, 3, 200, 600)")
    session.query("insert into batch_job (kind, lines) values ('post', 1)")
    posted = {"scripts": [{"name": "post", "completed": 1}], "commits": 1}
    assert all(check.passed for check in igen_batch.check(session, then, posted))
    session.query("update batch_ledger set lines = lines - 1 where month = 12")
    assert [check.name for check in igen_batch.check(session, then, posted) if not check.passed] == [
        "ledger = history, month by month"
    ]
    session.query("delete from batch_history where month = 3")
    failed = [check.name for check in igen_batch.check(session, then, posted) if not check.passed]
    assert "lines posted = lines held + archived" in failed


class _Sqlite:
    """A file of the core's own SQLite."""

    engine = "sqlite"

    def __init__(self, folder: Path) -> None:
        from ironbench import _core

        self._connection = _core.SqliteConnection(str(folder / "x.db"))

    def query(self, sql: str) -> Any:
        return self._connection.query(sql)
