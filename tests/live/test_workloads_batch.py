"""The batch workload on real engines: its rules hold, and tampering violates them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from factories import require_installed
from workload_trial import Served, Trial, loaded

from ironbench import engines
from ironbench.cli import main
from ironbench.engines.mariadb.session import MariadbSession

pytestmark = pytest.mark.live
HELD = (
    "select month, product_id, quantity, price_cents, amount_cents, count(*) from batch_history "
    "group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5",
    "select count(distinct line_id), max(line_id) from batch_history",
    "select month, shard, line_count, amount_cents from batch_ledger where line_count > 0 order by 1, 2",
    "select * from batch_month order by 1",
    "select * from batch_archive order by 1",
    "select * from batch_product order by 1",
    "select * from batch_price_change order by 1, 2, 3",
    "select * from batch_job order by 1",
    "select h.month, count(*), sum(h.quantity), sum(h.amount_cents), sum(h.quantity * p.price_cents) "
    "from batch_history h join batch_product p on p.product_id = h.product_id "
    "where p.product_id % 16 = 3 group by h.month order by h.month",
)
"""Everything that the jobs leave, except which line of a posting has which number."""


def driven(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    monkeypatch.setattr("sys.argv", ["ironbench", "run", "igen-batch", *words, "--json", "--warmup", "0s"])
    with pytest.raises(SystemExit):
        main()
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found["trials"][0]


@pytest.mark.parametrize(
    "engine", ["postgres", *(pytest.param(one, marks=pytest.mark.long) for one in ("sqlite", "mariadb"))]
)
def test_jobs_run_beside_each_other_and_every_rule_holds(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_installed(engine)
    place = ["--engine", engine, "--data", str(tmp_path / "data"), "--results", str(tmp_path / "results")]
    trial = driven(monkeypatch, capsys, *place, "--clients", "3", "--duration", "4s", "--with", "lines=50")
    assert [check["name"] for check in trial["checks"] if not check["passed"]] == []
    assert trial["status"] in ("ok", "suspect")
    metrics = trial["metrics"]
    for job in ("post", "reprice", "summary", "age"):
        assert metrics[f"throughput{{script={job}}}"] > 0, job
    assert metrics["errors"] == 0


@pytest.mark.long
def test_jobs_of_one_seed_leave_the_same_on_every_engine_that_has_partitions(
    served: Served, joined: MariadbSession
) -> None:
    left = []
    for session in (served, joined):
        loaded(session, "igen-batch")
        trial = Trial(session, "igen-batch", transactions=150, clients=1, lines="40")
        assert trial.failed() == set()
        jobs = {script["name"]: script["completed"] for script in trial.summary["scripts"]}
        left.append([jobs, *(session.query(sql) for sql in HELD)])
    assert left[0][0]["age"] > 1
    for ours, theirs in zip(*left, strict=True):
        assert ours == theirs


def test_an_ageing_that_was_interrupted_is_finished_before_results_are_checked(joined: MariadbSession) -> None:
    """In MariaDB, DDL on partitions commits the transaction, so a crash may leave one change without the other."""
    loaded(joined, "igen-batch")
    trial = Trial(joined, "igen-batch", transactions=20, clients=2, lines="40")
    ((oldest, newest),) = joined.query("select min(month), max(month) from batch_month")
    assert oldest and newest
    joined.query(
        f"alter table batch_history add partition (partition batch_history_{int(newest) + 1} "
        f"values less than ({int(newest) + 2}))"
    )
    of_it = f"where month = {oldest}"
    joined.query(
        f"insert into batch_archive select {oldest}, count(*), sum(amount_cents) from batch_history {of_it}; "
        f"delete from batch_ledger {of_it}; delete from batch_month {of_it}; "
        f"insert into batch_month values ({int(newest) + 1}); "
        f"insert into batch_job select nextval(batch_job_seq), 'age', line_count from batch_archive {of_it}"
    )
    assert trial.failed() == {"jobs that replace a month = their commits"}  # the commits of the test itself


def test_data_are_made_anew_with_their_sequences(joined: MariadbSession) -> None:
    loaded(joined, "igen-batch")
    joined.query("update ironbench_load set loaded_at = null")
    assert not loaded(joined, "igen-batch").reused
    assert {"batch_line_seq", "batch_job_seq"} < set(engines.get("mariadb").administration.made(joined).tables)
    engines.get("mariadb").administration.remove_made(joined)
    assert joined.query("show tables") == []


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
    session.query("insert into batch_job (kind, line_count) values ('post', 1)")
    posted = {"scripts": [{"name": "post", "completed": 1}], "commits": 1}
    assert all(check.passed for check in igen_batch.check(session, then, posted))
    session.query("update batch_ledger set line_count = line_count - 1 where month = 12")
    assert [check.name for check in igen_batch.check(session, then, posted) if not check.passed] == [
        "ledger = history, month by month"
    ]
    session.query("delete from batch_history where month = 3")
    failed = [check.name for check in igen_batch.check(session, then, posted) if not check.passed]
    assert "lines posted = lines in history + archived" in failed


class _Sqlite:
    """A file opened by the core's own SQLite."""

    engine = "sqlite"

    def __init__(self, folder: Path) -> None:
        from ironbench import _core

        self._connection = _core.SqliteConnection(str(folder / "x.db"))

    def query(self, sql: str) -> Any:
        return self._connection.query(sql)
