"""The `igen-batch` workload: batch jobs that run inside the database, on an order history that is divided into months.
Design: docs/workloads/igen-batch.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice
from ironbench.workloads import sql_files
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload, checked, one_row
from ironbench.workloads.commit_check import Commits, commits_check
from ironbench.workloads.fixed_rows import FixedRows

FOLDER = Path(__file__).parent
VERSION = 2
"""Version of the data, increased whenever the same options would produce other rows or another schema."""
MONTHS = 12
PRODUCTS = 1000
"""Number of products per unit of scale. `LINES_PER_MONTH` is also per unit of scale."""
LINES_PER_MONTH = 10_000
REPRICED = 20
JOBS = {"post": 20, "reprice": 8, "summary": 8, "age": 1}
"""Weights of the jobs. Between two runs of `age`, about twenty runs of `post` add lines to the newest months."""
TABLES = (
    "batch_job",
    "batch_price_change",
    "batch_archive",
    "batch_ledger",
    "batch_month",
    "batch_history",
    "batch_product",
)


class IgenBatch(Workload):
    name = "igen-batch"
    doc = (
        "Batch jobs inside the database: posts orders, changes prices, replaces the oldest month "
        "of the order history, and computes summaries. Uses range partitions, triggers, stored "
        "procedures and sequences if the engine supports them."
    )
    needs = ("scripts", "transactions", "data", "triggers")
    counts = ("job", "jobs")
    options = (
        Option(
            "scale",
            "1",
            "scale factor; each unit is 120,000 rows of history (about 9 to 18 MB)",
            lowest=1,
            highest=10_000,
        ),
        Option("lines", "500", "number of order lines that a posting job inserts", lowest=1, highest=1_000_000),
    )

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        return [sql_files.script(FOLDER, name, engine, weight) for name, weight in JOBS.items()]

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        products = PRODUCTS * int(options["scale"])
        return {"lines": options["lines"], "products": str(products), "repriced": str(REPRICED)}

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        scale = int(options["scale"])
        products, lines = scale * PRODUCTS, scale * LINES_PER_MONTH
        schema = sql_files.statements(FOLDER, "schema", engine)
        return Dataset(
            name="batch",
            key=f"igen-batch version={VERSION} scale={scale}",
            tables=(*TABLES, *_sequences(schema)),
            schema=schema,
            generator={
                "rows": "batch",
                "products": products,
                "months": MONTHS,
                "lines_per_month": lines,
                "seed": 0,
            },
            keys=sql_files.statements(FOLDER, "keys", engine),
            references=sql_files.statements(FOLDER, "references", engine),
            rows=products + MONTHS * lines,
            bytes=scale * sql_files.size(FOLDER, "schema", engine),
            facts={"scale": options["scale"]},
            fixed=(FixedRows("batch_product", ("product_id",)),),
            intact=(
                f"select (select count(*) from batch_product) = {products} "
                f"and (select count(*) from batch_month) = {MONTHS}"
            ),
        )

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        return sums(session)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        return check(session, before, summary)


_SEQUENCE = re.compile(r"create sequence (\w+)$")


def _sequences(schema: Sequence[str]) -> list[str]:
    """Returns the sequences that belong to no table. These sequences must be dropped separately, because dropping a
    table does not drop them."""
    return [made[1] for statement in schema if (made := _SEQUENCE.match(statement))]


_SUMS = """
    select (select count(*) from batch_job where kind <> 'age'), (select count(*) from batch_job where kind = 'age'),
           (select sum(line_count) from batch_job where kind = 'post'),
           (select count(*) from batch_history), (select sum(line_count) from batch_archive),
           (select sum(revision) from batch_product), (select count(*) from batch_price_change)"""


@dataclass(frozen=True, slots=True)
class JobSums:
    """Sums over the rows that the jobs have written."""

    writing: int
    """Number of finished jobs that posted lines or changed prices."""
    ageing: int
    posted: int
    """Number of lines that jobs have posted."""
    held: int
    archived: int
    revisions: int
    changes: int
    commits: Commits


def sums(session: Session) -> JobSums:
    commits = Commits.read(session)
    writing, ageing, posted, held, archived, revisions, changes = one_row(session, _SUMS)
    return JobSums(writing, ageing, posted, held, archived, revisions, changes, commits)


def check(session: Session, before: JobSums, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    commits = commits_check(session, before.commits, summary)
    # These statements complete jobs that a crash has interrupted.
    for statement in sql_files.statements(FOLDER, "finish", session.engine):
        session.query(statement)
    now = sums(session)
    done = {script["name"]: int(script["completed"]) for script in summary["scripts"]}
    unsure = int(summary.get("server_commits_uncertain", 0))
    return (
        checked("ledger = history, month by month", 0, _unlike(session)),
        checked("lines posted = lines in history + archived", *_lines(before, now)),
        checked("price revisions = recorded price changes", now.revisions, now.changes),
        *_months(session),
        _jobs("writing jobs", done.get("post", 0) + done.get("reprice", 0), now.writing - before.writing, unsure),
        _jobs("jobs that replace a month", done.get("age", 0), now.ageing - before.ageing, unsure),
        *commits,
    )


def _lines(before: JobSums, now: JobSums) -> tuple[int, int]:
    return now.posted - before.posted, now.held + now.archived - before.held - before.archived


def _jobs(name: str, expected: int, jobs: int, unsure: int) -> Check:
    """Compares the number of jobs with the number of their commits. If a connection broke, the client does not know
    whether its last job was committed."""
    return checked(f"{name} = their commits", expected, jobs, expected <= jobs <= expected + unsure)


def _unlike(session: Session) -> int:
    """Returns the number of inconsistencies. These are shards of months whose totals differ from the ledger, and lines
    whose amount is not price × quantity."""
    return one_row(
        session,
        """
        select (select count(*) from (
            select month, shard from (
                select month, product_id % 8 as shard, count(*) as line_count, sum(amount_cents) as amount_cents
                from batch_history group by 1, 2
                union all select month, shard, -line_count, -amount_cents from batch_ledger) both_sides
            group by month, shard having sum(line_count) <> 0 or sum(amount_cents) <> 0) unlike)
        + (select count(*) from batch_history where amount_cents <> quantity * price_cents)""",
    )[0]


def _months(session: Session) -> tuple[Check, ...]:
    span = one_row(session, "select count(*), max(month) - min(month) + 1 from batch_month")
    checks = [checked(f"{MONTHS} months without a gap", f"{MONTHS} of {MONTHS}", f"{span[0]} of {span[1]}")]
    engine = engines.get(session.engine)
    if engine.can("partitions"):
        partitions = one_row(session, engine.traits.dialect.partitions("batch_history"))
        checks.append(checked("a partition for each month", MONTHS, partitions[0]))
    return tuple(checks)


WORKLOAD = IgenBatch()
