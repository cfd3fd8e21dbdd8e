"""Which refresh set is next: a note in the database itself, so that it comes back with every copy of the data."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench import engines
from ironbench.model.session import Session

TABLE = "ironbench_tpch"
_SCHEMA = f"CREATE TABLE IF NOT EXISTS {TABLE} (loaded_at text, next_set bigint, past_set bigint)"


@dataclass(frozen=True, slots=True)
class Position:
    """Sets before `next` are in the data. Those from `next` up to, not including, `past` were begun and not ended."""

    loaded_at: str
    """Of the load that this belongs to."""
    next: int = 1
    past: int = 1

    @property
    def fresh(self) -> bool:
        """As loaded: no refresh function has touched the data."""
        return self.past == 1

    @property
    def interrupted(self) -> range:
        return range(self.next, self.past)


def read(session: Session, loaded_at: str) -> Position:
    """The position of the data loaded then. A note about data loaded earlier counts for nothing, and of two the later
    one counts."""
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
    """To be written before a set is begun, and again when it has ended: positions only grow.

    The old note goes when the new one is there, for without any the data would pass as fresh.
    """
    loaded_at, following, past = position.loaded_at, position.next, position.past
    session.query(f"INSERT INTO {TABLE} VALUES ('{loaded_at}', {following}, {past})")
    session.query(
        f"DELETE FROM {TABLE} WHERE loaded_at <> '{loaded_at}' OR next_set <> {following} OR past_set <> {past}"
    )


def loaded_at(session: Session, data: str) -> str:
    """When the tables of this name were loaded, as the load's own note says; empty where somebody else loaded them."""
    rows = session.query(f"SELECT loaded_at FROM ironbench_load WHERE data = '{data}'")
    return (rows[0][0] or "") if rows else ""
