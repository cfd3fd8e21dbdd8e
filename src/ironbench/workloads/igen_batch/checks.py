"""The rules of the order history. All queries run outside the timed window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked, one_row
from ironbench.workloads.commits import Commits, commits_check

MONTHS = 12
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


def read(session: Session) -> State:
    commits = Commits.read(session)
    writing, ageing, posted, held, archived, revisions, changes = one_row(session, _SUMS)
    return State(writing, ageing, posted, held, archived, revisions, changes, commits.after(1))


def check(session: Session, then: State, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    commits = commits_check(session, then.commits, summary)
    now = read(session)
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


def _jobs(name: str, expected: int, found: int, unsure: int) -> Check:
    """A job whose connection broke may have been done without our knowing."""
    return checked(f"{name} = their commits", expected, found, expected <= found <= expected + unsure)


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
    found = [checked(f"{MONTHS} months without a gap", f"{MONTHS} of {MONTHS}", f"{span[0]} of {span[1]}")]
    engine = engines.get(session.engine)
    if engine.can("partitions"):
        partitions = one_row(session, engine.traits.dialect.partitions("batch_history"))
        found.append(checked("a partition for each month", MONTHS, partitions[0]))
    return tuple(found)
