"""The row in the database that records which data are loaded and whether they are complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ironbench import engines
from ironbench.model.session import Session
from ironbench.trial.load.tables import present

TABLE = "ironbench_load"
_SCHEMA = (
    # `rows` is quoted because it is a reserved word in some engines. The types exist in all engines.
    f"create table {TABLE} (data varchar(200) not null primary key, content_key varchar(1000) not null, "
    'loaded_at varchar(40), "rows" decimal(19) not null, bytes decimal(19) not null, '
    "elapsed_s double precision not null)"
)


@dataclass(frozen=True, slots=True)
class LoadState:
    key: str
    loaded_at: str
    """Time of the load in UTC. Empty while loading, so that an interrupted load is never considered complete."""
    rows: int
    bytes: int
    elapsed_s: float

    @property
    def complete(self) -> bool:
        return bool(self.loaded_at)


class Marker:
    """The marker row of one family of tables."""

    def __init__(self, session: Session, data: str) -> None:
        self._session = session
        self._data = data

    def read(self) -> LoadState | None:
        """Returns the marker row. Returns None if ironbench has never started to load these tables here."""
        if not present(self._session, (TABLE,)):
            return None
        found = self._session.query(
            f"select content_key, coalesce(loaded_at, ''), \"rows\", bytes, elapsed_s from {TABLE} "
            f"where data = {quoted(self._data)}"
        )
        if not found:
            return None
        key, loaded_at, rows, size, elapsed_s = (value or "" for value in found[0])
        return LoadState(key, loaded_at, int(rows), int(size), float(elapsed_s))

    def others(self) -> list[str]:
        """Returns the names of the other families of tables that ironbench has loaded or started to load here."""
        if not present(self._session, (TABLE,)):
            return []
        names = {(data or "").partition("/")[0] for (data,) in self._session.query(f"select data from {TABLE}")}
        return sorted(names - {self._data})

    def forget(self) -> None:
        """Deletes the marker row and the results of `fixed_rows`."""
        self._session.query(
            f"delete from {TABLE} where data = {quoted(self._data)} or data like {quoted(f'{self._data}/%')}"
        )

    def begin(self, key: str) -> None:
        """Creates the marker row, which shows that the tables belong to ironbench and that they are not complete
        yet."""
        if not present(self._session, (TABLE,)):
            self._session.query(_SCHEMA)
            engines.get(self._session.engine).administration.mark(self._session, (TABLE,))
        self.forget()
        self._session.query(f"insert into {TABLE} values ({quoted(self._data)}, {quoted(key)}, null, 0, 0, 0)")

    def fixed(self) -> dict[str, str]:
        """Returns the result of `fixed_rows` after loading: for each table, the number and the sums of the rows that no
        transaction changes. Returns an empty dict if an older version of ironbench loaded the data."""
        rows = self._session.query(f"select data, content_key from {TABLE} where data like {quoted(f'{self._data}/%')}")
        return {(data or "").removeprefix(f"{self._data}/"): sums or "" for data, sums in rows}

    def note_fixed(self, loaded_at: str, fixed: Mapping[str, str]) -> None:
        """Stores the result of `fixed_rows`, for `fixed` to read. Must be called before `complete`."""
        for table, sums in fixed.items():
            name = quoted(f"{self._data}/{table}")
            self._session.query(f"insert into {TABLE} values ({name}, {quoted(sums)}, {quoted(loaded_at)}, 0, 0, 0)")

    def complete(self, loaded_at: str, rows: int, size: int, elapsed_s: float) -> None:
        """Marks the data as complete, which is the last step of a load."""
        self._session.query(
            f'update {TABLE} set loaded_at = {quoted(loaded_at)}, "rows" = {rows}, bytes = {size}, '
            f"elapsed_s = {elapsed_s:.6f} where data = {quoted(self._data)}"
        )


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
