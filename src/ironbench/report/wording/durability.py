"""Words for data that a crash can lose."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.record import CAN_LOSE_DATA
from ironbench.report.wording.registry import wording
from ironbench.words import listed

EVENTS = {
    "crash": "a crash",
    "crash-in-transaction": "a crash inside a transaction",
    "server-crash": "a server crash",
    "os-crash": "an operating system crash",
    "os-crash-or-power-failure": "an operating system crash or power failure",
    "power-failure": "a power failure",
}
LOSSES = {
    "binary-log": "may lose the end of the binary log",
    "database": "may corrupt the database",
    "last-changes": "may lose the last changes",
    "last-commits": "may lose the last commits",
    "torn-pages": "may leave torn pages that recovery cannot repair",
    "whole-database": "may corrupt the whole database",
}


@wording(CAN_LOSE_DATA)
def can_lose_data(settings: Sequence[Sequence[str]]) -> str:
    """fsync=off can lose data (a power failure may corrupt the whole database)

    `settings`: name, value, event and loss of each; in older records the last two are one clause.
    """
    clauses = ((name, value, " ".join(map(_word, why))) for name, value, *why in settings)
    return listed([f"{name}={value} can lose data ({why})" for name, value, why in clauses]) or "data can be lost"


def _word(code: str) -> str:
    return EVENTS.get(code) or LOSSES.get(code, code)
