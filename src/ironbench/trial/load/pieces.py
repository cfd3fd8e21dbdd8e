"""What of a large load is there already: each piece is noted in the transaction that brings it."""

from __future__ import annotations

from typing import Any

from ironbench import engines
from ironbench.model.session import Session
from ironbench.trial.load.marker import quoted
from ironbench.trial.load.tables import present

TABLE = "ironbench_load_piece"
_SCHEMA = (
    # The key: no piece is there twice, whatever becomes of a worker that was taken for lost.
    f"create table {TABLE} (data varchar(200) not null, piece varchar(200) not null, first bigint not null, "
    "past bigint not null, primary key (data, piece, first))"
)


class LoadedPieces:
    """The notes about one family of tables; there are none once its load is complete."""

    def __init__(self, session: Session, data: str) -> None:
        self._session = session
        self._data = data

    def known(self) -> bool:
        """Whether notes were begun here and not ended."""
        return bool(present(self._session, (TABLE,)))

    def begin(self) -> None:
        """Forgets whatever was noted."""
        self.end()
        self._session.query(_SCHEMA)
        engines.get(self._session.engine).administration.mark(self._session, (TABLE,))

    def rows(self) -> list[dict[str, Any]]:
        """Pieces of tables, in the words of the core's load plan."""
        rows = self._session.query(f"select piece, first, past from {TABLE} where data = {quoted(self._data)}")
        return [
            {"table": str(piece), "first": int(first or 0), "past": int(past or 0)}
            for piece, first, past in rows
            if not str(piece).startswith("#")
        ]

    @property
    def note(self) -> str:
        """The statement that the core runs with each piece."""
        return f"insert into {TABLE} values ({quoted(self._data)}, ':table', :first, :past)"

    def missing(self, phase: str, statements: tuple[str, ...]) -> list[str]:
        """Statements of a phase that have not been run, each with its own note in one transaction."""
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
