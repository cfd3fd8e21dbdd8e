"""The progress of a large load. Each piece is recorded in the transaction that inserts the piece's rows."""

from __future__ import annotations

from typing import Any

from ironbench import engines
from ironbench.model.session import Session
from ironbench.trial.load.marker import quoted
from ironbench.trial.load.tables import present

TABLE = "ironbench_load_piece"
_SCHEMA = (
    # Because of the primary key, no piece is loaded twice, even if a worker that was considered lost still runs.
    f"create table {TABLE} (data varchar(200) not null, piece varchar(200) not null, first bigint not null, "
    "past bigint not null, primary key (data, piece, first))"
)


class LoadedPieces:
    """A table in the database that records which pieces of the data are already loaded. The table is dropped when the
    load is complete."""

    def __init__(self, session: Session, data: str) -> None:
        self._session = session
        self._data = data

    def known(self) -> bool:
        """Returns whether a load was started in this database and is not complete."""
        return bool(present(self._session, (TABLE,)))

    def begin(self) -> None:
        """Removes the record of earlier pieces and starts recording."""
        self.end()
        self._session.query(_SCHEMA)
        engines.get(self._session.engine).administration.mark(self._session, (TABLE,))

    def rows(self) -> list[dict[str, Any]]:
        """Returns the pieces of tables that are already loaded, in the format of the core's load plan."""
        rows = self._session.query(f"select piece, first, past from {TABLE} where data = {quoted(self._data)}")
        return [
            {"table": str(piece), "first": int(first or 0), "past": int(past or 0)}
            for piece, first, past in rows
            if not str(piece).startswith("#")
        ]

    @property
    def note(self) -> str:
        """The statement that the core runs in the transaction of each piece."""
        return f"insert into {TABLE} values ({quoted(self._data)}, ':table', :first, :past)"

    def missing(self, phase: str, statements: tuple[str, ...]) -> list[str]:
        """Returns those statements of a phase that have not run yet. A returned statement also records that it has run,
        in the same transaction."""
        rows = self._session.query(
            f"select first from {TABLE} where data = {quoted(self._data)} and piece = {quoted('#' + phase)}"
        )
        done = {int(first or 0) for (first,) in rows}
        return [self._noted(phase, n, sql) for n, sql in enumerate(statements) if n not in done]

    def end(self) -> None:
        self._session.query(f"drop table if exists {TABLE}")

    def _noted(self, phase: str, number: int, statement: str) -> str:
        noted = f"{statement}; insert into {TABLE} values ({quoted(self._data)}, '#{phase}', {number}, {number + 1})"
        begin = engines.get(self._session.engine).traits.dialect.begin
        return f"{begin}; {noted}; commit" if begin else noted
