"""Writes and reads marks. A mark is a statement that contains the server's counters, so that they appear in the log.
Marks are sent at the start and at the end of a capture. The counters are names of columns in the statement. Every log
format contains whole statements, and `--mask` does not change names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench import engines
from ironbench.errors import InputError
from ironbench.model.session import Session
from ironbench.model.system import System

NAME = "ironbench mark"
TEMPLATE = f"select ? as _{NAME}_%"
"""LIKE pattern that the template of every mark matches."""
COUNTED = (
    *("rows_inserted", "rows_updated", "rows_deleted"),
    *("wal_bytes", "wal_records", "wal_full_page_images", "blocks_hit", "blocks_read"),
    *("log_bytes", "pages_hit", "pages_read"),
)
"""Counters that are compared between recording and replay. No engine has to provide all of them."""
_COUNTER = re.compile(r'["`](\w+)=(\d+)["`]')


@dataclass(frozen=True, slots=True)
class Mark:
    at_us: int
    database: str
    counters: Mapping[str, int]


def write(dsn: str) -> dict[str, int]:
    """Sends a mark to the database of a DSN. Returns the counters in the mark. Raises InputError and FailureError."""
    word = engines.scheme(dsn)
    engine = engines.of_scheme(word)
    if engine is None or engine.traits.captures is None:
        cause = (
            f"the statements of the engine `{engine.name}` cannot be captured"
            if engine
            else f"no engine supports {word}://"
        )
        raise InputError("--mark", cause, "use a server whose statements can be replayed")
    system, secrets = engine.validated(System(engine.name, "capture", dsn=dsn), 0)
    with engines.running(system, secrets, 0) as session:
        counters = counted(session)
        session.query(statement(counters, engine.traits.captures.quote))
    return counters


def counted(session: Session) -> dict[str, int]:
    known = session.counters()
    return {name: known[name] for name in COUNTED if name in known}


def statement(counters: Mapping[str, int], quote: str = '"') -> str:
    names = (NAME, *(f"{name}={count}" for name, count in counters.items()))
    return f"select {', '.join(f'1 as {quote}{name}{quote}' for name in names)}"


def read(at_us: int, database: str, text: str) -> Mark:
    known = {name: int(count) for name, count in _COUNTER.findall(text) if name in COUNTED}
    return Mark(at_us, database, known)


def growth(first: Mark, last: Mark) -> dict[str, int]:
    """Returns by how much each counter grew between two marks. Returns an empty dict if the marks are from different
    databases, or if counters were reset in between."""
    if first.database != last.database:
        return {}
    grown = {name: last.counters[name] - count for name, count in first.counters.items() if name in last.counters}
    return {} if any(count < 0 for count in grown.values()) else grown


def together(marks: Sequence[Mark]) -> tuple[str, dict[str, int]]:
    """Returns the database of the marks, and the growth of its counters from the first to the last mark."""
    return marks[0].database, growth(marks[0], marks[-1])
