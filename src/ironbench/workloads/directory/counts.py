"""What a directory counts, held against what clients did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbench.errors import FailureError
from ironbench.model.record import Check
from ironbench.model.session import Directory, Session
from ironbench.workloads.base import checked

WRITES = ("add", "delete", "modify", "modrdn")
"""Operations that change something, as servers count them."""


def entries(session: Directory, top: str) -> int | None:
    """Below and with this one. None: a server of others may limit what it shows."""
    try:
        return session.count(f"search {top}?1.1?sub")
    except FailureError:
        return None


def writes(session: Session) -> int | None:
    """Completed since the server started; None: it does not say."""
    counted = session.counters()
    return sum(counted[name] for name in WRITES) if counted.keys() >= set(WRITES) else None


def changes(before: int | None, now: int | None, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    """The server may count what was under way at the end, too. After a power cut it begins at zero."""
    if before is None or now is None or summary.get("power_cut"):
        return ()
    ours, unsure = int(summary["commits"]), int(summary.get("server_commits_uncertain", 0))
    grown = now - before
    return (checked("our changes = the server's", f"{ours} to {ours + unsure}", grown, ours <= grown <= ours + unsure),)
