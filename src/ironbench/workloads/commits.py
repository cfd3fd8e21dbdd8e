"""Our count of commits against the server's.

A server counts every commit in the database, of whomever. What is not the trial's own is known or bounded:

- this session's own commits between the two readings, and those of the observers' connections (checkpoints that they
  request included): counted by the wire as those of clients, and taken off; where a workload drives itself, observers
  commit at most `OBSERVED_PER_S`;
- each connection, those of observers, of clients that wait for work and new ones (`reconnect`, after a loss) included:
  one commit at its start (a statement is prepared in the message that first uses it, which takes no commit);
- autovacuum: `PER_TABLE` for each table that it has vacuumed or analyzed, by the server's own count, and `PER_ROUND`
  for each round of its workers.

So the server may show more than we counted, up to that bound, and never less: a commit that we counted and the server
did not is an answer we made up. PostgreSQL 18 documentation, 27.2.2: a backend reports its counts when it goes idle,
at most once per second, and when it ends; hence the wait for the clients' backends to be gone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked

PER_TABLE = 8
"""Vacuum commits when it begins, when it has truncated the table and when it has noted the result; analyze once."""
PER_ROUND = 12
"""Three workers (autovacuum_max_workers) that connect, list tables and find none that is due, and their ends."""
OBSERVED_PER_S = 100
SETTLE_S = 2.0
"""How long backends may take to end after their clients have closed."""


@dataclass(frozen=True, slots=True)
class Commits:
    """A reading of the server's count."""

    server: int | None
    """None: the engine keeps no such count."""
    own: int = 0
    """Of the session that read it."""
    maintained: int = 0
    rest_s: float = 60.0

    @staticmethod
    def read(session: Session) -> Commits:
        count = engines.get(session.engine).administration.commits(session)
        if count is None:
            return Commits(None)
        return Commits(count.server, count.own, count.maintained, count.rest_s)


def commits_check(session: Session, then: Commits, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    """One check; none where the engine keeps no count of its own."""
    if then.server is None or summary.get("power_cut"):
        # After an unclean shutdown all of the server's counters begin at zero (PostgreSQL 18 documentation, 27.2).
        return ()
    wait_for_clients(session)
    now = Commits.read(session)
    assert now.server is not None
    commits = now.server - then.server - (now.own - then.own) - int(summary.get("observer_commits", 0))
    ours, unsure = int(summary["commits"]), int(summary.get("server_commits_uncertain", 0))
    most = ours + unsure + _allowance(summary, now.maintained - then.maintained, now.rest_s)
    return (checked("our commits = the server's", f"{ours} to {most}", commits, ours <= commits <= most),)


def _allowance(summary: Mapping[str, Any], maintained: int, rest_s: float) -> int:
    """Commits that may be nobody's transaction; `maintained`: tables, `rest_s` from round to round."""
    seconds = float(summary["elapsed_s"]) + float(summary.get("warmup_s", 0.0)) + SETTLE_S
    observed = OBSERVED_PER_S * seconds if "observer_commits" not in summary else 0.0
    observed += int(summary.get("observer_commits_uncertain", 0))
    connections = int(summary["clients"]) + int(summary.get("waiting_clients", 0))
    connections += int(summary.get("connections_lost", 0)) + int(summary.get("observer_connections", 0))
    if again := int(summary.get("reconnects", 0)):
        # Of the measured time; in the warm-up they are as many for each transaction.
        connections += math.ceil(again * int(summary["commits"]) / max(1, int(summary["transactions"]))) + connections
    return int(observed + PER_TABLE * maintained + PER_ROUND * (1 + seconds / rest_s) + connections)


def wait_for_clients(session: Session) -> None:
    """Waits, for a short while, until clients and observers are gone."""
    deadline = time.monotonic() + SETTLE_S
    while engines.get(session.engine).administration.clients(session) and time.monotonic() < deadline:
        time.sleep(0.02)
