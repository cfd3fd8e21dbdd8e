"""Our count of commits against the server's.

A server counts every commit in the database, of whomever. What is not the trial's own is known or bounded:

- this session's statements between the two readings: counted here;
- each connection, those of clients that wait for work and new ones of `reconnect` included: one commit at its start
  and one for each statement it prepares;
- the observers' connections: their statements (the summary's `observer_statements`, else at most `OBSERVED_PER_S`),
  requested checkpoints among them;
- autovacuum: a few short transactions per table and visit, at most `AUTOVACUUM_PER_S`.

So the server may show more than we counted, up to that bound, and never less: a commit that we counted and the server
did not is an answer we made up. PostgreSQL 18 documentation, 27.2.2: a backend reports its counts when it goes idle,
at most once per second, and when it ends; hence the wait for the clients' backends to be gone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked

AUTOVACUUM_PER_S = 20
OBSERVED_PER_S = 100
SETTLE_S = 2.0
"""How long backends may take to end after their clients have closed."""


@dataclass(frozen=True, slots=True)
class Commits:
    """A reading, and how many commits this session made since."""

    server: int | None
    """None: the engine keeps no such count."""
    own: int = 0

    @staticmethod
    def read(session: Session) -> Commits:
        count = engines.get(session.engine).administration.commits(session)
        return Commits(None) if count is None else Commits(*count)

    def after(self, statements: int) -> Commits:
        return replace(self, own=self.own + statements)


def commits_check(session: Session, then: Commits, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    """One check; none where the engine keeps no count of its own."""
    if then.server is None or summary.get("power_cut"):
        # After an unclean shutdown all of the server's counters begin at zero (PostgreSQL 18 documentation, 27.2).
        return ()
    asked = wait_for_clients(session)
    now = Commits.read(session)
    assert now.server is not None
    # `read` flushes this session's counts up to and including its first statement.
    commits = now.server - then.server - then.own - asked - 1
    ours, unsure = int(summary["commits"]), int(summary.get("server_commits_uncertain", 0))
    most = ours + unsure + _allowance(summary)
    return (checked("our commits = the server's", f"{ours} to {most}", commits, ours <= commits <= most),)


def _allowance(summary: Mapping[str, Any]) -> int:
    seconds = float(summary["elapsed_s"]) + float(summary.get("warmup_s", 0.0)) + SETTLE_S
    observed = summary.get("observer_statements", OBSERVED_PER_S * seconds)
    prepared = sum(int(script["statements"]) for script in summary["scripts"])
    connections = int(summary["clients"]) + int(summary.get("waiting_clients", 0))
    if again := int(summary.get("reconnects", 0)):
        # Of the measured time; in the warm-up they are as many for each transaction.
        connections += math.ceil(again * int(summary["commits"]) / max(1, int(summary["transactions"]))) + connections
    return int(observed + AUTOVACUUM_PER_S * seconds + connections * (1 + prepared))


def wait_for_clients(session: Session) -> int:
    """Waits, for a short while, until clients and observers are gone; how many statements that took."""
    asked = 0
    deadline = time.monotonic() + SETTLE_S
    while True:
        asked += 1
        if engines.get(session.engine).administration.clients(session) == 0 or time.monotonic() > deadline:
            return asked
        time.sleep(0.02)
