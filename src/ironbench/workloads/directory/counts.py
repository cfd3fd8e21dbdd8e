"""Compares the counters of a directory server with what the clients did."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ironbench.errors import FailureError
from ironbench.model.driven import Driven
from ironbench.model.note import Note, note
from ironbench.model.record import Check
from ironbench.model.session import DirectorySession, Session
from ironbench.workloads.base import checked

WRITES = ("add", "delete", "modify", "modrdn")
"""Operations that change entries, by the names of the server's counters."""
_AMONG = "server changes include client changes"
_PATIENCE_S = 1.0


def entries(session: DirectorySession, top: str, among: int, which: str = "") -> int | None:
    """Returns the number of entries at and below `top` that match the filter `which`. Returns None if the server
    refuses the search. `among`: see `shown`."""
    return entries_found(session, f"search {top}?1.1?sub{'?' if which else ''}{which}", among)


def entries_found(session: DirectorySession, search: str, among: int) -> int | None:
    """Returns how many entries a search finds. Returns None if the server refuses the search, for example because of a
    size limit. Raises FailureError if the server does not answer.

    `among`: estimated size of the directory, see `model.session.DirectorySession.count`.
    """
    try:
        return session.count(search, among)
    except FailureError as error:
        if not getattr(error, "number", 0):
            raise
        return None


def writes(session: Session) -> int | None:
    """Returns the number of changes that the server has completed since it started, including failed ones. Returns None
    if the server does not count them."""
    counted = session.counters()
    return sum(counted[name] for name in WRITES) if counted.keys() >= set(WRITES) else None


def writes_after(session: Session, before: int | None, summary: Mapping[str, Any]) -> int | None:
    """Waits briefly until the server has counted the changes of the trial. Returns the same number as `writes`. The
    wait is necessary because a server may count an operation after it has sent the answer (OpenLDAP 2.6,
    servers/slapd/connection.c, `connection_operation`).
    """
    least = 0 if before is None or summary.get("power_cut") else before + _ours(summary)
    deadline = time.monotonic() + _PATIENCE_S
    while (now := writes(session)) is not None and now < least and time.monotonic() < deadline:
        time.sleep(0.01)
    return now


def changes(
    session: DirectorySession, before: int | None, now: int | None, summary: Mapping[str, Any]
) -> tuple[Check, ...]:
    """Checks that the server counted the clients' changes. Not checked after a power cut, because the counters start at
    zero again. The server also counts changes that it refused, and may count those that were in progress at the end. On
    an existing server, other clients may make changes, so only a lower bound is checked.
    """
    if before is None or now is None or summary.get("power_cut"):
        return ()
    ours, unsure = _ours(summary), int(summary.get("server_commits_uncertain", 0))
    grown = now - before
    if not session.is_own:
        return (checked(_AMONG, f"{ours} or more", grown, ours <= grown),)
    return (
        checked("client changes = server changes", f"{ours} to {ours + unsure}", grown, ours <= grown <= ours + unsure),
    )


def others(driven: Driven) -> tuple[Note, ...]:
    """Returns a note if the server counted more changes than ironbench's clients made. Other clients of an existing
    server made the rest. The counts are taken from the check of the clients' changes."""
    most = _ours(driven.summary) + int(driven.summary.get("server_commits_uncertain", 0))
    found = [int(check.actual) for check in driven.checks if check.name == _AMONG]
    return tuple(note("others-changed", changes=grown - most) for grown in found if grown > most)


def _ours(summary: Mapping[str, Any]) -> int:
    return int(summary.get("commits", 0)) + int(summary.get("refused_changes", 0))
