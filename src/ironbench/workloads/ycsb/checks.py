"""Checks after a trial that no record was lost, that reads found their records, and that fields kept their length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked
from ironbench.workloads.commit_check import Commits, commits_check
from ironbench.workloads.fixed_rows import WHOLE_ROWS
from ironbench.workloads.ycsb import records
from ironbench.workloads.ycsb.operations import INSERT, READ, READ_MODIFY_WRITE

MISSED = "ycsb_reads_missed"
"""Name of a count in the core's summary: reads that returned no record or a wrong one."""


@dataclass(frozen=True, slots=True)
class State:
    """State before a trial."""

    records: int | None
    """Number of records, or None if there are too many to count in a short time."""
    commits: Commits


def read_state(session: Session, options: Mapping[str, str]) -> State:
    counts = int(options["records"]) <= WHOLE_ROWS
    return State(records.count(session) if counts else None, Commits.read(session))


def check(session: Session, options: Mapping[str, str], before: State, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    commits = commits_check(session, before.commits, summary)
    scripts = {script["name"]: script for script in summary["scripts"]}
    found: list[Check] = []
    if before.records is not None:
        expected = before.records + int(scripts.get(INSERT, {}).get("completed", 0))
        most, now = expected + int(summary.get("server_commits_uncertain", 0)), records.count(session)
        asked = f"{expected} to {most}" if most > expected else expected
        found.append(checked("records = records before + inserts", asked, now, expected <= now <= most))
    if {READ, READ_MODIFY_WRITE} & set(scripts):
        found.append(checked("reads that did not find their record", 0, int(summary.get("figures", {}).get(MISSED, 0))))
    # The seed of the sample differs from trial to trial, so that repeated trials check different records.
    sample = records.sample(options, int(summary.get("commits", 0)))
    whole = records.count_whole(session, options, sample)
    return (*commits, *found, checked("sampled records in which all fields are intact", len(sample), whole))
