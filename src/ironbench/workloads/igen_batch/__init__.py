"""Batch jobs inside the database, over an order history by month. Its design: docs/concepts/igen-batch.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice
from ironbench.workloads import base
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload, checked, one_row
from ironbench.workloads.commits import Commits, commits_check

FOLDER = Path(__file__).parent
VERSION = 1
"""Raised whenever the same options would give other rows or another schema."""
MONTHS = 12
PRODUCTS = 1000
"""Per unit of scale, as the lines of a month."""
LINES_PER_MONTH = 10_000
REPRICED = 20
JOBS = {"post": 20, "reprice": 8, "summary": 8, "age": 1}
"""Job → weight. Between two ageings about twenty postings fill the newest months."""
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
        "Batch jobs inside the database: postings, new prices, months aged out and in, summaries; an order history "
        "in range partitions with triggers, stored procedures and sequences, or without them where the engine has none"
    )
    needs = ("scripts", "data", "full joins")
    counts = ("job", "jobs")
    options = (
        Option("scale", "1", "size: 120,000 lines of history, some 9 to 18 MB, per unit", lowest=1, highest=10_000),
        Option("lines", "500", "of one posting", lowest=1, highest=1_000_000),
    )

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        return [base.script(FOLDER, name, engine, weight) for name, weight in JOBS.items()]

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        products = PRODUCTS * int(options["scale"])
        return {"lines": options["lines"], "products": str(products), "repriced": str(REPRICED)}

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        scale = int(options["scale"])
        products, lines = scale * PRODUCTS, scale * LINES_PER_MONTH
        return Dataset(
            name="batch",
            key=f"igen-batch version={VERSION} scale={scale}",
            tables=TABLES,
            schema=base.statements(FOLDER, "schema", engine),
            generator={
                "rows": "batch",
                "products": products,
                "months": MONTHS,
                "lines_per_month": lines,
                "seed": 0,
            },
            keys=base.statements(FOLDER, "keys", engine),
            references=base.statements(FOLDER, "references", engine),
            rows=products + MONTHS * lines,
            bytes=scale * base.size(FOLDER, "schema", engine),
            facts={"scale": options["scale"]},
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


_SUMS = """
    select (select count(*) from batch_job where kind <> 'age'), (select count(*) from batch_job where kind = 'age'),
           (select sum(lines) from batch_job where kind = 'post'),
           (select count(*) from batch_history), (select sum(lines) from batch_archive),
           (select sum(revision) from batch_product), (select count(*) from batch_price_change)"""


@dataclass(frozen=True, slots=True)
class State:
    """What the jobs leave behind, as sums."""

    writing: int
    """Jobs that post or re-price."""
    ageing: int
    posted: int
    """Lines."""
    held: int
    archived: int
    revisions: int
    changes: int
    commits: Commits


def sums(session: Session) -> State:
    commits = Commits.read(session)
    writing, ageing, posted, held, archived, revisions, changes = one_row(session, _SUMS)
    return State(writing, ageing, posted, held, archived, revisions, changes, commits.after(1))


def check(session: Session, then: State, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    commits = commits_check(session, then.commits, summary)
    now = sums(session)
    done = {script["name"]: int(script["completed"]) for script in summary["scripts"]}
    unsure = int(summary.get("server_commits_uncertain", 0))
    return (
        checked("ledger = history, month by month", 0, _unlike(session)),
        checked("lines posted = lines held + archived", *_lines(then, now)),
        checked("revisions of prices = changes noted", now.revisions, now.changes),
        *_months(session, now),
        _jobs("jobs that wrote", done.get("post", 0) + done.get("reprice", 0), now.writing - then.writing, unsure),
        _jobs("months aged", done.get("age", 0), now.ageing - then.ageing, unsure),
        *commits,
    )


def _lines(then: State, now: State) -> tuple[int, int]:
    return now.posted - then.posted, now.held + now.archived - then.held - then.archived


def _jobs(name: str, expected: int, jobs: int, unsure: int) -> Check:
    """A job whose connection broke may have been done without our knowing."""
    return checked(f"{name} = their commits", expected, jobs, expected <= jobs <= expected + unsure)


def _unlike(session: Session) -> int:
    """Months and shards that are not as in the ledger, and lines whose amount is not price × quantity."""
    return one_row(
        session,
        """
        select (select count(*) from (
            select month, product_id % 8 as shard, count(*) as lines, sum(amount_cents) as amount_cents
            from batch_history group by 1, 2) h
            full join (select * from batch_ledger where lines > 0) l on l.month = h.month and l.shard = h.shard
            where h.lines is null or l.lines is null or h.lines <> l.lines or h.amount_cents <> l.amount_cents)
        + (select count(*) from batch_history where amount_cents <> quantity * price_cents)""",
    )[0]


def _months(session: Session, now: State) -> tuple[Check, ...]:
    span = one_row(session, "select count(*), max(month) - min(month) + 1 from batch_month")
    checks = [checked(f"{MONTHS} months without a gap", f"{MONTHS} of {MONTHS}", f"{span[0]} of {span[1]}")]
    engine = engines.get(session.engine)
    if engine.can("partitions"):
        partitions = one_row(session, engine.traits.dialect.partitions("batch_history"))
        checks.append(checked("a partition for each month", MONTHS, partitions[0]))
    return tuple(checks)


WORKLOAD = IgenBatch()
