"""Checks after a trial that the loaded rows still exist, and that inserts, deletes and increments agree with the
clients' counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked, one_row
from ironbench.workloads.commit_check import Commits, commits_check
from ironbench.workloads.fixed_rows import WHOLE_ROWS
from ironbench.workloads.sysbench import events, tables

INSERTS = "oltp_insert"


@dataclass(frozen=True, slots=True)
class SbtestState:
    """State before a trial."""

    fixed: Mapping[str, str]
    """Number of loaded rows and sum of their ids. The key is the table."""
    added: int
    """Number of rows that were added. The ids of these rows are above those of the loaded rows."""
    all: int
    """Number of all rows. Counted only for the test that deletes rows; 0 for all other tests."""
    k: int
    """Sum of `k` over all rows. 0 if `increments` is 0, because the sum is not read then."""
    commits: Commits


def read_state(session: Session, options: Mapping[str, str]) -> SbtestState:
    # The commit counter is read last. Otherwise, the other queries would count as commits of the trial.
    fixed, added, all_rows, k = _fixed(session, options), _added(session, options), _all(session, options), 0
    if increments(options):
        k = _sum(session, options, "select sum(k) from {}")
    return SbtestState(fixed, added, all_rows, k, Commits.read(session))


def check(
    session: Session, options: Mapping[str, str], before: SbtestState, summary: Mapping[str, Any]
) -> tuple[Check, ...]:
    # The commits are read first. Otherwise, the other queries of this session would also be counted.
    found = list(commits_check(session, before.commits, summary))
    (script,) = summary["scripts"]
    done, unsure = int(script["completed"]), int(summary.get("server_commits_uncertain", 0))
    fixed = _fixed(session, options)
    changed = [table for table, sums in before.fixed.items() if fixed[table] != sums]
    found.append(checked("tables without some of their loaded rows", "none", ", ".join(changed) or "none"))
    inserted = done if options["test"] == INSERTS else 0
    added = _added(session, options) - before.added
    most = inserted + (unsure if inserted else 0)
    found.append(checked("rows inserted = events" if inserted else "rows added", *_range_check(inserted, most, added)))
    if options["test"] == tables.DELETES:
        deleted = before.all - _all(session, options)
        # There may be fewer deleted rows than events, because an event may choose a row that was already deleted.
        least = min(1, before.all, done)
        found.append(checked("rows deleted, at most one per event", *_range_check(least, done + unsure, deleted)))
    if each := increments(options):
        grown = _sum(session, options, "select sum(k) from {}") - before.k
        found.append(checked("growth of k = updates", *_range_check(done * each, (done + unsure) * each, grown)))
    return tuple(found)


def _range_check(least: int, most: int, actual: int) -> tuple[str, int, bool]:
    expected = f"{least} to {most}" if most > least else str(least)
    return expected, actual, least <= actual <= most


def _fixed(session: Session, options: Mapping[str, str]) -> dict[str, str]:
    if options["test"] == tables.DELETES:
        return {}
    return {rows.table: rows.read(session, tables.rows(options)) for rows in tables.fixed(options)}


def _added(session: Session, options: Mapping[str, str]) -> int:
    return _sum(session, options, f"select count(*) from {{}} where id > {options['table_size']}")


def _all(session: Session, options: Mapping[str, str]) -> int:
    return _sum(session, options, "select count(*) from {}") if options["test"] == tables.DELETES else 0


def _sum(session: Session, options: Mapping[str, str], sql: str) -> int:
    return sum(one_row(session, sql.format(table))[0] for table in tables.names(options))


def increments(options: Mapping[str, str]) -> int:
    """Returns by how much each event increases the sum of `k`. Returns 0 if the sum is not checked. This is the case if
    rows are replaced by rows with another `k`, or if there are too many rows. The sum is also not checked without
    transactions, because a failed event may have done some of its updates.
    """
    parts = events.uses(options, "skip_trx") and options["skip_trx"] == "on"
    if events.replaces(options) or parts or tables.rows(options) > WHOLE_ROWS:
        return 0
    return events.increments(options)
