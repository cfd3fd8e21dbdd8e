"""Rows that no transaction of a workload changes. The number of rows and a checksum are compared before data are used
again. The checksum is a sum of columns. A single scan of a table therefore computes both, in SQL that every engine
supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.model.session import Session

WHOLE_ROWS = 20_000_000
"""Maximum number of rows, in all tables together, for which tables are read completely. This takes a few seconds. If
there are more rows, tables with a `key` are sampled."""
_WINDOWS, _WINDOW_KEYS = 32, 2_000


@dataclass(frozen=True, slots=True)
class FixedRows:
    """A part of a table whose rows stay as they were loaded."""

    table: str
    sums: tuple[str, ...] = ()
    """Numeric expressions over columns that never change."""
    where: str = ""
    """Condition that selects the loaded rows. Needed if trials add rows to the table."""
    key: str = ""
    """Integer column by whose ranges a large table is sampled. An index must begin with this column."""

    def read(self, session: Session, rows: int) -> str:
        """Returns the number of rows and the sums, as a text. On one server, the text is the same for the same rows.
        `rows`: number of rows in all tables together.
        """
        if not self.key or rows <= WHOLE_ROWS:
            return self._summed(session, self.where)
        ((low, high),) = session.query(f"select min({self.key}), max({self.key}) from {self.table}{self._clause()}")
        if low is None or high is None:
            return "0"
        found = [f"{low} to {high}"]
        for first in windows(int(low), int(high)):
            window = f"{self.key} between {first} and {first + _WINDOW_KEYS - 1}"
            found.append(self._summed(session, f"{self.where} and {window}" if self.where else window))
        return "; ".join(found)

    def _summed(self, session: Session, where: str) -> str:
        sums = "".join(f", sum({expression})" for expression in self.sums)
        clause = f" where {where}" if where else ""
        (row,) = session.query(f"select count(*){sums} from {self.table}{clause}")
        return ", ".join(value or "0" for value in row)

    def _clause(self) -> str:
        return f" where {self.where}" if self.where else ""


def windows(low: int, high: int) -> Sequence[int]:
    """Returns the first key of each window. Windows have `_WINDOW_KEYS` keys and are evenly spaced from the lowest to
    the highest key."""
    last = max(low, high - _WINDOW_KEYS + 1)
    return sorted({low + (last - low) * place // (_WINDOWS - 1) for place in range(_WINDOWS)})
