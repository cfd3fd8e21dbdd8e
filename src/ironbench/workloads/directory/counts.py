"""What a directory counts, held against what clients did."""

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
"""Operations that change something, as servers count them."""
_AMONG = "our changes are among the server's"
_PATIENCE_S = 1.0


def entries(session: DirectorySession, top: str, among: int, which: str = "") -> int | None:
    """Below and with this one, by a filter. None: the server refuses to show them. `among`: see `shown`."""
    return shown(session, f"search {top}?1.1?sub{'?' if which else ''}{which}", among)


def shown(session: DirectorySession, search: str, among: int) -> int | None:
    """How many entries a search finds; None: the server refuses it, e.g. beyond a limit. FailureError: it does not
    answer. `among`: estimated size of the directory, see `model.session.Directory.count`."""
    try:
        return session.count(search, among)
    except FailureError as error:
        if not getattr(error, "number", 0):
            raise
        return None


def writes(session: Session) -> int | None:
    """Completed since the server started, well or not; None: it does not say."""
    counted = session.counters()
    return sum(counted[name] for name in WRITES) if counted.keys() >= set(WRITES) else None


def writes_after(session: Session, before: int | None, summary: Mapping[str, Any]) -> int | None:
    """As `writes`, once those of the trial are among them, if that is soon.

    A server may count an operation after its answer has left (OpenLDAP 2.6, servers/slapd/connection.c,
    `connection_operation`).
    """
    least = 0 if before is None or summary.get("power_cut") else before + _ours(summary)
    deadline = time.monotonic() + _PATIENCE_S
    while (now := writes(session)) is not None and now < least and time.monotonic() < deadline:
        time.sleep(0.01)
    return now


def changes(
    session: DirectorySession, before: int | None, now: int | None, summary: Mapping[str, Any]
) -> tuple[Check, ...]:
    """The server counts what it refused, too, and may count what was under way at the end. Others may change a server
    that is not ours: all that is known of it is the least. After a power cut it begins at zero."""
    if before is None or now is None or summary.get("power_cut"):
        return ()
    ours, unsure = _ours(summary), int(summary.get("server_commits_uncertain", 0))
    grown = now - before
    if not session.is_own:
        return (checked(_AMONG, f"{ours} or more", grown, ours <= grown),)
    return (checked("our changes = the server's", f"{ours} to {ours + unsure}", grown, ours <= grown <= ours + unsure),)


def others(driven: Driven) -> tuple[Note, ...]:
    """Changes of others on a server that is not ours, as the check of ours has seen them."""
    most = _ours(driven.summary) + int(driven.summary.get("server_commits_uncertain", 0))
    found = [int(check.actual) for check in driven.checks if check.name == _AMONG]
    return tuple(note("others-changed", changes=grown - most) for grown in found if grown > most)


def _ours(summary: Mapping[str, Any]) -> int:
    return int(summary.get("commits", 0)) + int(summary.get("refused_changes", 0))
