"""The number of the next refresh set. The number is stored in the database itself, so that every copy of the data
contains it."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench import engines
from ironbench.model.session import Session

TABLE = "ironbench_tpch"
_SCHEMA = f"CREATE TABLE IF NOT EXISTS {TABLE} (loaded_at text, next_set bigint, past_set bigint)"


@dataclass(frozen=True, slots=True)
class Position:
    """Position in the refresh sets. Sets before `next` have been executed. Sets from `next` to `past` - 1 were started
    but not completed."""

    loaded_at: str
    """Time at which the data were loaded. The position is valid only for these data."""
    next: int = 1
    past: int = 1

    @property
    def fresh(self) -> bool:
        """Whether no refresh function has been started, so that the data are as they were loaded."""
        return self.past == 1

    @property
    def interrupted(self) -> range:
        return range(self.next, self.past)


def read(session: Session, loaded_at: str) -> Position:
    """Returns the position for data that were loaded at this time. Ignores the positions of earlier loads. If a crash
    left two rows, returns the later position."""
    session.query(_SCHEMA)
    engines.get(session.engine).administration.mark(session, (TABLE,))
    rows = session.query(
        f"SELECT next_set, past_set FROM {TABLE} WHERE loaded_at = '{loaded_at}' ORDER BY past_set DESC, next_set DESC"
    )
    if not rows:
        return Position(loaded_at)
    following, past = (int(value or 1) for value in rows[0])
    return Position(loaded_at, following, past)


def write(session: Session, position: Position) -> None:
    """Stores the position. Must be called before a set is started, and again after it has completed. Positions only
    grow.

    The new row is stored before the old one is deleted. If there were no row after a crash, the data would look
    unchanged.
    """
    loaded_at, following, past = position.loaded_at, position.next, position.past
    session.query(f"INSERT INTO {TABLE} VALUES ('{loaded_at}', {following}, {past})")
    session.query(
        f"DELETE FROM {TABLE} WHERE loaded_at <> '{loaded_at}' OR next_set <> {following} OR past_set <> {past}"
    )


def loaded_at(session: Session, data: str) -> str:
    """Returns the recorded time at which the tables of this dataset were loaded. Returns "" if another program loaded
    them."""
    rows = session.query(f"SELECT loaded_at FROM ironbench_load WHERE data = '{data}'")
    return (rows[0][0] or "") if rows else ""
