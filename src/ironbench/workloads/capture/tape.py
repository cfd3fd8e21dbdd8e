"""Prepares the replay of a capture: assigns sessions to clients and writes the tape that the core reads."""

from __future__ import annotations

import heapq
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np

from ironbench.errors import FailureError, InputError
from ironbench.words import cut
from ironbench.workloads.capture import file, selection

_KINDS = 11
"""Kinds of transactions that are counted separately: those that occur most often. The rest is one more kind."""
_PLACES = 300
"""Statements that are counted and timed separately: those that occur most often."""
_REST = "other transactions"
_REST_STATEMENTS = "other statements"
_LONGEST_NAME = 60
_LONGEST_TEMPLATE = 2_000
_CONTROL = ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set")
_TABLE = re.compile(r'\b(?:from|into|update|table|join)\s+(?:only\s+)?("[^"]+"|[\w.$]+)')


@dataclass(frozen=True, slots=True)
class Chosen:
    """The part of a capture that is replayed."""

    statements: int
    left_out: int
    """Statements that the user chose, but that a replay cannot run."""
    transactions: int
    clients: int
    """Sessions that were open at the same time."""
    length_s: float
    databases: tuple[str, ...]
    writes: bool


@dataclass(frozen=True, slots=True)
class Tape:
    path: str
    clients: tuple[tuple[int, int], ...]
    kinds: tuple[tuple[str, tuple[str, ...]], ...]


def chosen(options: Mapping[str, str]) -> Chosen:
    """Returns facts about the statements that the options choose. Raises InputError if there are none."""
    path = options["file"]
    return _chosen(path, file.stamp(path), selection.read(options))


def tape(options: Mapping[str, str]) -> Tape:
    """Returns the tape of these options, which exists as long as this process. Raises InputError, FailureError."""
    path = options["file"]
    return _tape(path, file.stamp(path), selection.read(options))


@lru_cache(maxsize=4)
def _chosen(path: str, stamp: tuple[int, int], which: selection.Selection) -> Chosen:
    file.facts(path)
    with file.database() as opened:
        _choose(opened, path, which)
        ((statements, transactions, began, ended, writes),) = file.asked(
            opened,
            "SELECT count(*), count(DISTINCT transaction), min(epoch_us(started_at)), "
            "max(epoch_us(started_at) + coalesce(duration_us, 0)), coalesce(bool_or(writes), false) FROM chosen",
        )
        ((whole,),) = file.asked(
            opened, f"SELECT count(*) FROM {file.source(path)} WHERE transaction IN (FROM selected)"
        )
        databases = file.asked(opened, "SELECT DISTINCT database_name FROM chosen WHERE database_name <> '' ORDER BY 1")
        clients = len(_assigned(opened)[0]) if statements else 0
    if not statements:
        what = (
            "no statement matches `only` and `except`"
            if not whole
            else "contains no matching statement that can be replayed"
        )
        raise InputError(path, what, f"see what it contains: ironbench show {path}")
    return Chosen(
        statements=statements,
        left_out=whole - statements,
        transactions=transactions,
        clients=clients,
        length_s=(ended - began) / 1e6,
        databases=tuple(name for (name,) in databases),
        writes=writes,
    )


def _choose(opened: duckdb.DuckDBPyConnection, path: str, which: selection.Selection) -> None:
    """Creates the table `selected`, with the transactions that the user chose, and the view `chosen`, with their
    statements that can be replayed."""
    opened.execute(
        f"CREATE TABLE selected AS SELECT transaction FROM {file.source(path)} GROUP BY 1 HAVING {which.condition}"
    )
    opened.execute(
        f"CREATE VIEW chosen AS SELECT * FROM {file.source(path)} "
        "WHERE left_out IS NULL AND transaction IN (FROM selected)"
    )


def _assigned(opened: duckdb.DuckDBPyConnection) -> tuple[list[int], dict[str, Any]]:
    """Assigns each session to a client that is free when the session starts. Returns the times at which clients become
    free, and a table of sessions with client and rank."""
    sessions = file.asked(
        opened,
        "SELECT session, min(epoch_us(started_at)) AS began, "
        "max(epoch_us(started_at) + coalesce(duration_us, 0)) FROM chosen GROUP BY session ORDER BY began, session",
    )
    free: list[tuple[int, int]] = []
    ends: list[int] = []
    clients = []
    for _, began, ended in sessions:
        if free and free[0][0] < began:
            client = heapq.heappop(free)[1]
            ends[client] = ended
        else:
            client = len(ends)
            ends.append(ended)
        heapq.heappush(free, (ended, client))
        clients.append(client)
    table = {
        "session": np.array([one[0] for one in sessions], dtype="u4"),
        "client": np.array(clients, dtype="i4"),
        "rank": np.arange(len(sessions), dtype="i8"),
    }
    return ends, table


@lru_cache(maxsize=4)
def _tape(path: str, stamp: tuple[int, int], which: selection.Selection) -> Tape:
    # A file without a name disappears with this process, however it ends.
    descriptor = os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    place = f"/proc/self/fd/{descriptor}"
    from ironbench import _core

    try:
        with file.database() as opened:
            _choose(opened, path, which)
            opened.register("assigned", _assigned(opened)[1])
            kinds = _count_kinds(opened)
            clients = _core.write_tape(opened.sql(_STATEMENTS), place)
    except duckdb.Error as error:
        raise FailureError(path, str(error).splitlines()[0]) from error
    return Tape(place, tuple(clients), kinds)


def _count_kinds(opened: duckdb.DuckDBPyConnection) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Creates the tables `of_transactions`, with the kind of each transaction, and `places`, with the place of each
    statement of a kind. Returns names and statements of the kinds."""
    opened.execute(
        "CREATE TABLE of_transactions AS SELECT transaction, hash(list(template ORDER BY number)) AS shape, "
        "bool_or(command IN ('begin', 'start')) AS is_block, min(number) AS first, max(number) AS last FROM chosen "
        "GROUP BY 1"
    )
    shapes = file.asked(
        opened,
        "SELECT shape, min(transaction) FROM of_transactions GROUP BY 1 ORDER BY count(*) DESC, 2 LIMIT ?",
        [_KINDS],
    )
    names = [*_named([_templates(opened, one) for _, one in shapes]), _REST]
    ranks = {
        "shape": np.array([shape for shape, _ in shapes], dtype="u8"),
        "kind": np.arange(len(shapes), dtype="i4"),
    }
    opened.register("shapes", ranks)
    opened.execute(
        "CREATE TABLE counted AS SELECT coalesce(kind, ?)::INTEGER AS kind, template, count(*) AS calls FROM chosen "
        "JOIN of_transactions USING (transaction) LEFT JOIN shapes USING (shape) GROUP BY 1, 2",
        [len(shapes)],
    )
    opened.execute(f"""
        CREATE TABLE places AS
        WITH ranked AS (
            SELECT kind, template, calls,
                CASE WHEN row_number() OVER (ORDER BY calls DESC, kind, template) <= {_PLACES} THEN template END AS text
            FROM counted
        )
        SELECT kind, template, text,
            (dense_rank() OVER (ORDER BY kind, text NULLS LAST) - 1)::INTEGER AS place
        FROM ranked
    """)
    found: dict[int, list[str]] = {}
    for kind, text, _ in file.asked(opened, "SELECT DISTINCT kind, text, place FROM places ORDER BY place"):
        found.setdefault(kind, []).append(_REST_STATEMENTS if text is None else cut(text, _LONGEST_TEMPLATE))
    return tuple((names[kind], tuple(found.get(kind, ()))) for kind in range(max(found) + 1))


def _templates(opened: duckdb.DuckDBPyConnection, transaction: int) -> list[str]:
    rows = file.asked(
        opened, "SELECT template FROM chosen WHERE transaction = ? ORDER BY number LIMIT 100", [transaction]
    )
    return [template for (template,) in rows]


def _named(kinds: Sequence[Sequence[str]]) -> list[str]:
    """Names each kind of transaction after its statements: `select item + insert sale`."""
    names: list[str] = []
    for templates in kinds:
        own = [label(one) for one in templates if one.split(" ", 1)[0].rstrip(";") not in _CONTROL]
        name = cut(" + ".join(dict.fromkeys(own)) or label(templates[0]), _LONGEST_NAME)
        same = sum(one == name or one.startswith(f"{name} #") for one in names)
        names.append(f"{name} #{same + 1}" if same else name)
    return names


def label(template: str) -> str:
    """Returns the first keyword of a statement and its first table: `insert sale`."""
    command = template.split(" ", 1)[0].strip("();") or "?"
    table = _TABLE.search(template)
    return f"{command} {table[1].strip(chr(34))}" if table else command


_STATEMENTS = """
    SELECT
        assigned.client,
        chosen.number = min(chosen.number) OVER (PARTITION BY session) AS opens,
        chosen.number = of_transactions.first AS begins,
        chosen.number = of_transactions.last AS ends,
        NOT is_block AND prepared IS NOT NULL AND chosen.number <> of_transactions.last AS pipelined,
        error IS NOT NULL AS failed,
        command IN ('discard', 'deallocate') AS discards,
        epoch_us(started_at) - (SELECT min(epoch_us(started_at)) FROM chosen) AS at_us,
        duration_us,
        places.kind,
        places.place,
        prepared,
        chosen.text,
        parameters
    FROM chosen
    JOIN assigned USING (session)
    JOIN of_transactions USING (transaction)
    LEFT JOIN shapes USING (shape)
    JOIN places ON places.kind = coalesce(shapes.kind, (SELECT count(*) FROM shapes))
        AND places.template = chosen.template
    ORDER BY assigned.client, assigned.rank, chosen.number
"""
