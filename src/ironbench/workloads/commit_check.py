"""Compares ironbench's count of commits with the server's.

The server counts every commit in the database, not only the clients'. Commits that are not transactions of the trial
are counted or bounded:

- Commits of this session between the two readings, and commits of observer connections (including requested
  checkpoints). The core counts these commits, as it does for clients, and they are subtracted. If a workload drives
  itself, observers commit at most `OBSERVED_PER_S`.
- One commit at the start of each connection, including connections of observers, of clients that wait for work, and new
  connections (`reconnect`, or after a loss). A statement is prepared in the message that first uses it, so that
  preparing takes no commit.
- Autovacuum: `PER_TABLE` for each table that it has vacuumed or analyzed, by the server's count, and `PER_ROUND` for
  each round of its workers. Tables of a worker that was running at the first reading are included, because the server
  counts a worker's commits when the worker ends.

The server may therefore report more commits than ironbench counted, up to this bound. The server must never report
fewer. A commit that only ironbench counted shows that the server reported success for a commit that did not happen. A
PostgreSQL backend reports its counts when it goes idle, at most once per second, and when it ends (PostgreSQL 18
documentation, 27.2.2). The check therefore waits until the clients' backends have ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked

PER_TABLE = 8
"""Number of commits of autovacuum per table. A vacuum commits when it starts, after truncating the table, and after
storing the result. An analyze commits once."""
PER_ROUND = 12
"""Number of commits per round of autovacuum. In a round, three workers (autovacuum_max_workers) connect, list the
tables, find none to process, and end."""
OBSERVED_PER_S = 100
SETTLE_S = 2.0
"""Maximum time in seconds to wait until backends have ended after their clients disconnected."""


@dataclass(frozen=True, slots=True)
class Commits:
    """Values of the server's commit counter and related counters at one time."""

    server: int | None
    """Number of commits that the server has counted, or None if the engine has no such counter."""
    own: int = 0
    """Number of commits of the session that reads the counter."""
    maintained: int = 0
    unreported: int = 0
    rest_s: float = 60.0
    at_s: float = field(default_factory=time.monotonic, compare=False)
    """Time at which the server's counter was read."""

    @staticmethod
    def read(session: Session) -> Commits:
        count = engines.get(session.engine).administration.commits(session)
        if count is None:
            return Commits(None)
        return Commits(count.server, count.own, count.maintained, count.unreported, count.rest_s)


def commits_check(session: Session, before: Commits, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    """Returns a check of the number of commits. Returns nothing if the engine has no commit counter, or if the trial
    contained a power cut."""
    if before.server is None or summary.get("power_cut"):
        # After an unclean shutdown, all counters of the server start at zero again (PostgreSQL 18 documentation, 27.2).
        return ()
    wait_for_clients(session)
    now = Commits.read(session)
    assert now.server is not None
    commits = now.server - before.server - (now.own - before.own) - int(summary.get("observer_commits", 0))
    ours, unsure = int(summary["commits"]), int(summary.get("server_commits_uncertain", 0))
    between_s = now.at_s - before.at_s
    maintained = now.maintained - before.maintained + before.unreported
    most = ours + unsure + _allowance(summary, maintained, between_s / now.rest_s)
    return (checked("client commits = server commits", f"{ours} to {most}", commits, ours <= commits <= most),)


def _allowance(summary: Mapping[str, Any], maintained: int, rounds: float) -> int:
    """Returns how many commits at most are not transactions of the trial. `maintained`: number of tables that
    autovacuum processed, or whose commits it reported. `rounds`: number of rounds of autovacuum between the two
    readings. Autovacuum's interval also includes pauses of an interleaved system.
    """
    seconds = float(summary["elapsed_s"]) + float(summary.get("warmup_s", 0.0)) + SETTLE_S
    observed = OBSERVED_PER_S * seconds if "observer_commits" not in summary else 0.0
    observed += int(summary.get("observer_commits_uncertain", 0))
    connections = int(summary["clients"]) + int(summary.get("waiting_clients", 0))
    connections += int(summary.get("connections_lost", 0)) + int(summary.get("observer_connections", 0))
    if again := int(summary.get("reconnects", 0)):
        # `reconnects` covers only the measured time. The warm-up is assumed to have as many reconnects per transaction.
        connections += math.ceil(again * int(summary["commits"]) / max(1, int(summary["transactions"]))) + connections
    return int(observed + PER_TABLE * maintained + PER_ROUND * (1 + rounds) + connections)


def wait_for_clients(session: Session) -> None:
    """Waits up to `SETTLE_S` until clients and observers have disconnected."""
    deadline = time.monotonic() + SETTLE_S
    while engines.get(session.engine).administration.clients(session) and time.monotonic() < deadline:
        time.sleep(0.02)
