"""Refresh functions of TPC-H specification 2.17.3, clauses 2.5 to 2.8 and 4.2.4. RF1 inserts 0.1% new orders with their
lines. RF2 deletes as many old ones. A separate process generates the rows. This process ends before the measured window
starts, so that its memory is free: the text pool alone takes 300 MB. An order and its lines change in one transaction.
The option `refresh_orders` sets the number of orders per transaction.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench.engines.dialect import Dialect
from ironbench.errors import FailureError, IronbenchError
from ironbench.host import job
from ironbench.model.session import WorkConnection
from ironbench.workloads.tpch.streams import StreamStep

SETS = 1000
"""Number of successive sets that use the same group of keys. The next thousand sets use the next group, which is the
next eight of every 32 keys (4.2.4)."""
_GROUPS = 4
_KEYS_OF_A_GROUP = 8


@dataclass(frozen=True, slots=True)
class RefreshPiece:
    """The part of a set that one transaction changes. The part contains the rows that RF1 inserts, in COPY's text
    format, and the range of keys that RF2 deletes."""

    orders: bytes
    lines: bytes
    first: int
    last: int
    """Smallest and largest key that RF2 deletes."""


@dataclass(frozen=True, slots=True)
class RefreshSet:
    number: int
    pieces: tuple[RefreshPiece, ...]


@dataclass(frozen=True, slots=True)
class Refresh:
    """A refresh function as a step of a stream."""

    name: str
    """Name of the function: `rf1` or `rf2`."""
    refresh_set: RefreshSet
    line: WorkConnection
    dialect: Dialect
    limit_s: float = float("inf")

    def run(self, after: StreamStep | None) -> tuple[int, float, float]:
        began_s = time.perf_counter()
        if self.name == "rf1":
            insert(self.line, self.refresh_set, self.dialect)
        else:
            delete(self.line, self.refresh_set)
        return len(self.refresh_set.pieces), began_s, time.perf_counter()


def insert(line: WorkConnection, refresh_set: RefreshSet, dialect: Dialect) -> None:
    """Runs RF1 with a refresh set. Raises FailureError."""
    for piece in refresh_set.pieces:
        with _transaction(line):
            line.copy_in(dialect.copy("orders"), piece.orders)
            line.copy_in(dialect.copy("lineitem"), piece.lines)


def delete(line: WorkConnection, refresh_set: RefreshSet) -> None:
    """Runs RF2 with a refresh set. Raises FailureError."""
    _delete(line, refresh_set, group=(refresh_set.number - 1) // SETS)


def again(line: WorkConnection, refresh_set: RefreshSet, dialect: Dialect) -> None:
    """Completes both functions after an interrupted trial, which may have executed a part of them. Deletes the set's
    new orders, and then runs both functions again. Raises FailureError."""
    _delete(line, refresh_set, group=(refresh_set.number - 1) // SETS + 1)
    insert(line, refresh_set, dialect)
    delete(line, refresh_set)


def _delete(line: WorkConnection, refresh_set: RefreshSet, group: int) -> None:
    """Deletes the orders of the set whose keys belong to a group: eight of every 32 consecutive keys."""
    low = group % _GROUPS * _KEYS_OF_A_GROUP
    for piece in refresh_set.pieces:
        with _transaction(line):
            for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
                line.query(
                    f"DELETE FROM {table} WHERE {key} BETWEEN {piece.first + low} AND {piece.last + low} "
                    f"AND {key} % 32 BETWEEN {low} AND {low + _KEYS_OF_A_GROUP - 1}"
                )


@contextmanager
def _transaction(line: WorkConnection) -> Iterator[None]:
    """Runs the block in a transaction. After a failure, rolls the transaction back. Otherwise, later steps of the
    stream would run inside the failed transaction."""
    line.query("BEGIN")
    try:
        yield
        line.query("COMMIT")
    except FailureError:
        with suppress(IronbenchError):
            line.query("ROLLBACK")
        raise


def made(generator: Mapping[str, Any], numbers: Sequence[int], orders: int, folder: Path) -> list[RefreshSet]:
    """Generates the refresh sets with these numbers. Raises FailureError. `orders`: number of orders per transaction.
    `generator`: plan of the row generator with which the tables were loaded.
    """
    if not numbers:
        return []
    declared = [
        ({**generator, "refresh_set": number}, table, str(folder / f"refresh-{number}.{table}"))
        for number in numbers
        for table in ("orders", "lineitem")
    ]
    job.run(job.CoreCall("write", json.dumps(declared).encode(), "refresh sets", FailureError))
    files = [Path(path) for _, _, path in declared]
    texts = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()
    return [
        RefreshSet(number, pieces(number, texts[2 * place], texts[2 * place + 1], orders))
        for place, number in enumerate(numbers)
    ]


def pieces(number: int, orders: bytes, lines: bytes, size: int) -> tuple[RefreshPiece, ...]:
    """Splits the rows of a set into transactions of `size` orders. The texts must be ordered by order key."""
    offset = ((number - 1) // SETS + 1) % _GROUPS * _KEYS_OF_A_GROUP
    of_order: dict[bytes, list[bytes]] = {}
    for line in lines.splitlines(keepends=True):
        of_order.setdefault(line.split(b"\t", 1)[0], []).append(line)
    rows = orders.splitlines(keepends=True)
    keys = [row.split(b"\t", 1)[0] for row in rows]
    parts = []
    for start in range(0, len(rows), size):
        part = keys[start : start + size]
        parts.append(
            RefreshPiece(
                orders=b"".join(rows[start : start + size]),
                lines=b"".join(line for key in part for line in of_order[key]),
                first=int(part[0]) - offset,
                last=int(part[-1]) - offset,
            )
        )
    return tuple(parts)
