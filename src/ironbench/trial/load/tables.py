"""Checks which tables a database contains, how large they are, and who created them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NoReturn

from ironbench import engines
from ironbench.engines.dialect import Dialect
from ironbench.errors import InputError
from ironbench.model.session import Session
from ironbench.words import some
from ironbench.workloads import Dataset

_ELSEWHERE = "use another database"
"""First part of the hint if existing tables prevent loading. Dropping them is not suggested first, because they may be
the user's only copy."""
_LONGEST = 200
"""Maximum number of characters of a text with row counts and sums that is stored as it is. For a longer text, a digest
is stored."""


def present(session: Session, tables: Sequence[str]) -> list[str]:
    """Returns those of `tables` that exist and that a query finds by their name without a schema. The order is the
    same."""
    names = {row[0] for row in session.query(_dialect(session).present(tables))}
    return [table for table in tables if table in names]


def refuse_occupied(session: Session, tables: Sequence[str]) -> None:
    """Raises InputError if a view, a sequence or another object has the name of one of `tables`."""
    dialect = _dialect(session)
    for name, kind in session.query(dialect.non_tables(tables)):
        what = dialect.kinds.get(kind or "", kind or "relation")
        cause = "exists, but ironbench needs that name for a table"
        raise InputError(f"{what} {name}", cause, _ELSEWHERE)


def refuse_foreign_routines(session: Session, statements: Sequence[str]) -> None:
    """Raises InputError if a function or procedure that ironbench did not create has the same name as a routine that
    `statements` create."""
    for name in engines.get(session.engine).administration.unmarked_routines(session, statements):
        cause = (
            "exists without a mark of ironbench, but ironbench needs that name (old versions of ironbench did not mark "
            "their routines)"
        )
        raise InputError(
            f"routine {name}",
            cause,
            f"run `drop routine {name}` if you do not need the routine, or use another database",
        )


def size(session: Session, tables: Sequence[str]) -> int:
    """Returns the size of the tables with their indexes. If the engine cannot count tables separately, returns the size
    of the whole database.

    If `tables` is empty, as for the user's own data, also returns the size of the whole database. Returns 0 if the size
    is unknown.
    """
    dialect = _dialect(session)
    sql = dialect.size(tables) if tables else dialect.database_size()
    return int(session.query(sql)[0][0] or 0) if sql else 0


def true(session: Session, sql: str) -> bool:
    """Returns whether the result of a query is a single true value."""
    return session.query(sql)[0][0] in _dialect(session).true


def _dialect(session: Session) -> Dialect:
    return engines.get(session.engine).traits.dialect


def refuse_strangers(session: Session, dataset: Dataset, there: Sequence[str]) -> None:
    """Checks existing tables that ironbench did not load. Raises InputError unless they contain exactly the required
    rows."""
    complete = len(there) == len(dataset.tables) and dataset.recognised
    if complete and all(true(session, query) for query in dataset.recognised):
        if violated := violations(session, dataset, fresh=False):
            raise InputError(
                f"tables {', '.join(there)}",
                f"exist, were not loaded by ironbench, and contain rows that violate {violated}",
                f"{_ELSEWHERE}, or load them again",
            )
        return
    hint = f"{_ELSEWHERE}: ironbench drops only what it created"
    if not dataset.recognised:
        raise InputError(f"table {there[0]}", "exists, but was not loaded by ironbench", hint)
    missing = [name for name in dataset.tables if name not in there]
    lacking = f" (missing: {some(missing)})" if missing else ""
    asked = " ".join(f"{name}={value}" for name, value in dataset.facts.items())
    given = " ".join(f"--with {name}=…" for name in dataset.facts)
    raise InputError(
        f"tables {some(there, 10)}",
        f"exist, were not loaded by ironbench, and do not match `{dataset.prepared_by}` with {asked}{lacking}",
        f"{hint}; if `{dataset.prepared_by}` created them, use its values ({given})",
    )


def violations(session: Session, dataset: Dataset, *, fresh: bool) -> str:
    """Returns the conditions of the dataset that its rows violate, with the number of rows. Returns "" if no condition
    is violated."""
    found = dataset.conditions(session, fresh) if dataset.conditions else ()
    return ", ".join(f"'{check.name}' ({check.actual})" for check in found if not check.passed)


def refuse_changed(session: Session, dataset: Dataset, key: str, there: Sequence[str], own_server: bool) -> None:
    """Checks tables that ironbench loaded completely. Raises InputError if they have changed since, or if the required
    data are different."""
    hint = f"{_ELSEWHERE}: ironbench drops only data that it can identify as its own"
    whole = len(there) == len(dataset.tables)
    if key == dataset.key and whole and dataset.intact and not true(session, dataset.intact):
        raise InputError(f"table {there[0]}", f"no longer contains what ironbench loaded ({key})", hint)
    if key != dataset.key and not own_server:
        raise InputError(
            f"table {there[0]}",
            f"contains {key}, not {dataset.key}",
            f"{_ELSEWHERE}, or use the same options{_cleanup(session)}",
        )


def refuse_shared(session: Session, table: str, keys: Sequence[str]) -> NoReturn:
    """Raises InputError, because `table` belongs to the data of other workloads on an existing server. `keys`: the keys
    of these data."""
    raise InputError(f"table {table}", f"belongs to {some(keys)}", f"{_ELSEWHERE}{_cleanup(session)}")


def _cleanup(session: Session) -> str:
    marks = engines.get(session.engine).administration.marks
    return "; `ironbench cleanup --dsn …` removes everything that ironbench created there" if marks else ""


def fixed_rows(session: Session, dataset: Dataset) -> dict[str, str]:
    """Returns for each table a text with the number and the sums of the rows that no transaction changes. A long text
    is replaced by its digest."""
    sums = {fixed.table: fixed.read(session, dataset.rows) for fixed in dataset.fixed}
    return {
        table: text if len(text) <= _LONGEST else f"sha256 {hashlib.sha256(text.encode()).hexdigest()}"
        for table, text in sums.items()
    }


def refuse_altered(session: Session, dataset: Dataset, loaded: Mapping[str, str]) -> None:
    """Raises InputError if rows that no transaction changes differ from those that were loaded."""
    found = fixed_rows(session, dataset) if loaded else {}
    altered = [table for table, sums in loaded.items() if table in found and found[table] != sums]
    if altered:
        table = altered[0]
        cause = f"no longer contains what ironbench loaded: rows and sums were {loaded[table]}, now {found[table]}"
        if len(altered) > 1:
            cause += f"; also {', '.join(altered[1:])}"
        raise InputError(
            f"table {table}", cause, f"{_ELSEWHERE}: ironbench drops only data that it can identify as its own"
        )
