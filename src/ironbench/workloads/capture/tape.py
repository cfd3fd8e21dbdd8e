"""Prepares the replay of a capture: assigns sessions to clients, and writes the file (tape) that the core reads."""

from __future__ import annotations

import heapq
import itertools
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import duckdb
import numpy as np

from ironbench import engines
from ironbench.errors import FailureError, InputError
from ironbench.model.inside import ScriptCommand
from ironbench.words import cut
from ironbench.workloads.capture import file, keys, roles, selection, shift
from ironbench.workloads.capture.keys import KeyUse
from ironbench.workloads.capture.roles import RoleUse

_KINDS = 11
"""Maximum number of kinds of transactions that are counted separately. These are the most frequent ones. All other
transactions are counted together, as a further kind."""
_PLACES = 300
"""Maximum number of statements that are counted and timed separately. These are the most frequent ones."""
_TYPICAL = 30
"""Maximum number of statements whose plans are compared."""
_MEMORY, _THREADS = "0.5GB", 2
"""Memory limit and number of threads of DuckDB. Each thread needs some of the memory. 0.25 GB is not enough for 8
million statements; with 0.5 GB, they take 15 s, and with 1 GB, 22 s."""
_REST = "other transactions"
_REST_STATEMENTS = "other statements"
_LONGEST_NAME = 60
_LONGEST_TEMPLATE = 2_000
_CONTROL = ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set")
_QUOTES = '"`'
_TABLE = re.compile(r'\b(?:from|into|update|table|join)\s+(?:only\s+)?("[^"]+"|`[^`]+`|[\w.$]+)')


@dataclass(frozen=True, slots=True)
class Chosen:
    """The part of a capture that is replayed."""

    statements: int
    left_out: int
    """Number of statements that the options choose but that cannot be replayed."""
    transactions: int
    clients: int
    """Maximum number of sessions that were open at the same time."""
    length_s: float
    databases: tuple[str, ...]
    writes: bool
    failed: int
    """Number of statements that failed when they were captured."""
    rows: int | None
    """Number of rows that the statements returned or changed, or None if the capture does not contain numbers of
    rows."""
    roles: Mapping[str, RoleUse]
    """Roles that the statements set."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Intended differences between a replay and the recording."""

    copies: int
    """How many times each session is replayed. The copies of a session run at the same time."""
    shift_time: bool
    new_keys: bool


@dataclass(frozen=True, slots=True)
class Tape:
    path: str
    clients: tuple[tuple[int, int], ...]
    kinds: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    """Kinds of transactions. Each kind has a name, and its statements with their numbers of calls."""
    keys: KeyUse
    slots: int
    """Number of slots for generated keys (see crates/ironbench-core/src/drive/capture/keys.rs)."""
    typical: tuple[ScriptCommand, ...]
    """The statements that took the most time. The parameters of these statements have the values of one execution."""


def chosen(options: Mapping[str, str]) -> Chosen:
    """Returns facts about the statements that the options choose. Raises InputError if the options choose none."""
    path = options["file"]
    one = _chosen(path, file.stamp(path), selection.read(options))
    copies = int(options["sessions"])
    return replace(
        one,
        statements=one.statements * copies,
        left_out=one.left_out * copies,
        transactions=one.transactions * copies,
        clients=one.clients * copies,
        failed=one.failed * copies,
        rows=None if one.rows is None else one.rows * copies,
        roles={name: RoleUse(use.statements * copies, use.calls * copies) for name, use in one.roles.items()},
    )


def tape(options: Mapping[str, str]) -> Tape:
    """Returns the tape for these options. The tape's file exists until this process ends. Raises InputError and
    FailureError."""
    path = options["file"]
    changes = Changes(int(options["sessions"]), options["shift_time"] == "yes", options["keys"] == "new")
    return _tape(path, file.stamp(path), selection.read(options), changes)


@lru_cache(maxsize=4)
def _chosen(path: str, stamp: tuple[int, int], which: selection.Selection) -> Chosen:
    facts = file.facts(path)
    if not facts.replayable:
        made = "masked" if facts.masked else "made"
        cause = f"was {made} by an earlier version of ironbench and can be shown, but not replayed"
        raise InputError(path, cause, "capture again with this version, if the logs still exist")
    with file.reading(path) as opened:
        _choose(opened, path, which)
        ((statements, transactions, began, ended, writes, failed, rows),) = file.asked(
            opened,
            "SELECT count(*), count(DISTINCT transaction), min(epoch_us(started_at)), "
            "max(epoch_us(started_at) + coalesce(duration_us, 0)), coalesce(bool_or(writes), false), count(error), "
            "CASE WHEN count(row_count) = count(*) THEN sum(row_count) END FROM chosen",
        )
        ((whole,),) = file.asked(
            opened, f"SELECT count(*) FROM {file.source(path)} WHERE transaction IN (FROM selected)"
        )
        databases = file.asked(opened, "SELECT DISTINCT database_name FROM chosen WHERE database_name <> '' ORDER BY 1")
        clients = len(_assigned(opened)[0]) if statements else 0
        set_roles = roles.read(opened, folds=engines.capturing(facts.protocol).folds_names)
    if not statements:
        what = (
            "`only` and `except` leave no statement"
            if not whole
            else "contains no matching statement that can be replayed"
        )
        raise InputError(path, what, f"`ironbench show {path}` shows the contents of the capture")
    return Chosen(
        statements=statements,
        left_out=whole - statements,
        transactions=transactions,
        clients=clients,
        length_s=(ended - began) / 1e6,
        databases=tuple(name for (name,) in databases),
        writes=writes,
        failed=failed,
        rows=None if rows is None else int(rows),
        roles=set_roles,
    )


def _choose(opened: duckdb.DuckDBPyConnection, path: str, which: selection.Selection, shift_s: float = 0.0) -> None:
    """Creates the table `selected` and the view `chosen`. `selected` contains the transactions that the user chose.
    `chosen` contains those of their statements that can be replayed. `shift_s`: seconds by which times in statements
    are shifted back."""
    text = "text"
    if shift_s:
        shift.register(opened, shift_s)
        text = f"CASE WHEN {shift.CONDITION} THEN {shift.FUNCTION}(text) ELSE text END AS text"
    opened.execute(
        f"CREATE TABLE selected AS SELECT transaction FROM {file.source(path)} GROUP BY 1 HAVING {which.condition}"
    )
    opened.execute(
        f"CREATE VIEW chosen AS SELECT * EXCLUDE (text), {text} FROM {file.source(path)} "
        "WHERE left_out IS NULL AND transaction IN (FROM selected)"
    )


def _assigned(opened: duckdb.DuckDBPyConnection) -> tuple[list[int], dict[str, Any]]:
    """Assigns each session to a client that is free when the session starts. Returns the time at which each client has
    finished its last session, and a table with the client and rank of each session."""
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


@cache  # because each call writes a file that exists until the process ends
def _tape(path: str, stamp: tuple[int, int], which: selection.Selection, changes: Changes) -> Tape:
    descriptor = _file_without_name()
    try:
        return _written(path, which, changes, f"/proc/self/fd/{descriptor}")
    except BaseException:
        os.close(descriptor)
        raise


def _file_without_name() -> int:
    """Creates a file without a name, which the kernel removes when this process ends or is killed. Returns its
    descriptor. Raises FailureError."""
    try:
        with tempfile.TemporaryFile(prefix="ironbench-tape-") as opened:
            return os.dup(opened.fileno())
    except OSError as error:
        cause = f"no temporary file can be created: {error.strerror or error}"
        raise FailureError("TMPDIR", cause, file.MAKE_ROOM) from error


def _written(path: str, which: selection.Selection, changes: Changes, place: str) -> Tape:
    from ironbench import _core

    facts = file.facts(path)
    captures = engines.capturing(facts.protocol)
    try:
        with file.database(memory_limit=_MEMORY, threads=_THREADS) as opened:
            shift_s = shift.seconds(facts.began_us) if changes.shift_time else 0.0
            _choose(opened, path, which, shift_s)
            free, assigned = _assigned(opened)
            opened.register("assigned", assigned)
            kinds = _count_kinds(opened, changes.copies)
            typical = _typical(opened, kinds, captures.parameter)
            used = keys.infer(opened, captures.generates, facts.masked) if changes.new_keys else keys.ignore(opened)
            ((slots,),) = file.asked(opened, "SELECT coalesce(sum(rows), 0)::BIGINT FROM keys")
            sql = _statements(changes.copies, len(free), slots, captures.pipelines)
            clients = _core.write_tape(opened.sql(sql), place)
    except (duckdb.Error, UnicodeDecodeError) as error:
        hint = file.MAKE_ROOM if isinstance(error, duckdb.OutOfMemoryException) else ""
        raise FailureError(path, str(error).splitlines()[0], hint) from error
    except FailureError as error:
        if error.subject != place:
            raise
        folder = tempfile.gettempdir()
        cause = f"the statements of the replay cannot be written to a temporary file in {folder}: {error.cause}"
        raise FailureError(path, cause, file.MAKE_ROOM) from error
    used = replace(used, known=used.known * changes.copies)
    return Tape(place, tuple(clients), kinds, used, slots * changes.copies, typical)


def _count_kinds(opened: duckdb.DuckDBPyConnection, copies: int) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """Creates the tables `of_transactions` and `places`. `of_transactions` contains the kind of each transaction.
    `places` contains a number for each statement of a kind. The statements of a kind are in the order of
    `ironbench show`: those that took the most time come first. Returns the name and the statements of each kind."""
    # The templates themselves would take much memory, and DuckDB cannot spill an ordered list of them.
    opened.execute("""
        CREATE TABLE of_transactions AS
        SELECT transaction, bit_xor(hash(template_hash, place)) AS shape, bool_or(begins_block) AS is_block,
            min(number) AS first, max(number) AS last
        FROM (
            SELECT transaction, number, hash(template) AS template_hash, command IN ('begin', 'start') AS begins_block,
                row_number() OVER (PARTITION BY transaction ORDER BY number) AS place
            FROM chosen
        )
        GROUP BY 1
    """)
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
        "CREATE TABLE counted AS SELECT coalesce(kind, ?)::INTEGER AS kind, template, count(*) AS calls, "
        "coalesce(sum(duration_us), 0) AS whole_us FROM chosen JOIN of_transactions USING (transaction) "
        "LEFT JOIN shapes USING (shape) GROUP BY 1, 2",
        [len(shapes)],
    )
    opened.execute(f"""
        CREATE TABLE places AS
        WITH ranked AS (
            SELECT *,
                CASE WHEN row_number() OVER (ORDER BY calls DESC, kind, template) <= {_PLACES} THEN template END AS text
            FROM counted
        )
        SELECT kind, template, text, calls,
            (dense_rank() OVER (
                ORDER BY kind, text IS NULL, CASE WHEN text IS NOT NULL THEN whole_us END DESC,
                    CASE WHEN text IS NOT NULL THEN calls END DESC, text
            ) - 1)::INTEGER AS place
        FROM ranked
    """)
    found: dict[int, list[tuple[str, int]]] = {}
    sql = "SELECT kind, text, sum(calls) FROM places GROUP BY kind, text, place ORDER BY place"
    for kind, text, calls in file.asked(opened, sql):
        shown = _REST_STATEMENTS if text is None else cut(text, _LONGEST_TEMPLATE)
        found.setdefault(kind, []).append((shown, int(calls) * copies))
    return tuple((names[kind], tuple(found.get(kind, ()))) for kind in range(max(found) + 1))


def _typical(
    opened: duckdb.DuckDBPyConnection, kinds: Sequence[tuple[str, object]], placeholder: str
) -> tuple[ScriptCommand, ...]:
    """Returns the statements that took the most time, of those that are counted separately. If the capture has no
    durations, returns the most frequent ones."""
    rows = file.asked(
        opened,
        f"""
        WITH ranked AS (
            SELECT kind, text, place, place - min(place) OVER (PARTITION BY kind) + 1 AS number FROM places
        ), one AS (
            SELECT coalesce(shapes.kind, (SELECT count(*) FROM shapes)) AS kind, template, min(chosen.number) AS first,
                coalesce(sum(duration_us), 0) AS whole_us, count(*) AS calls
            FROM chosen JOIN of_transactions USING (transaction) LEFT JOIN shapes USING (shape)
            WHERE error IS NULL GROUP BY 1, 2
        )
        SELECT ranked.kind, ranked.number, one.template, chosen.text, chosen.parameters
        FROM one JOIN ranked ON ranked.kind = one.kind AND ranked.text = one.template
        JOIN chosen ON chosen.number = one.first
        WHERE regexp_matches(one.template, '^(select|insert|update|delete|replace|merge|with|values|table)\\b')
        ORDER BY whole_us DESC, calls DESC, one.template LIMIT {_TYPICAL}
        """,
    )
    return tuple(
        ScriptCommand(kinds[kind][0], number, template, _with_values(text, parameters, placeholder))
        for kind, number, template, text, parameters in rows
    )


def _with_values(text: str, parameters: Sequence[str | None] | None, placeholder: str) -> str:
    """Returns a text with values in place of its parameters."""
    values = ["null" if one is None else file.quoted(one) for one in parameters or ()]
    if not values:
        return text
    places = itertools.count()

    def value(found: re.Match[str]) -> str:
        if found.re.groups:
            place = int(found[1]) - 1
        elif found[0] == "?":
            place = next(places)
        else:  # a literal
            return found[0]
        return values[place] if place < len(values) else found[0]

    return re.sub(placeholder, value, text)


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
    return f"{command} {table[1].strip(_QUOTES)}" if table else command


def _statements(copies: int, clients: int, slots: int, pipelines: bool) -> str:
    """Returns the query for the contents of the tape. Each copy of a session has its own client and keys. The starts of
    the copies are spread over the mean time between two transactions, so that the copies are not synchronised.

    `slots`: number of slots for the keys of a copy. `pipelines`: whether statements of an implicit transaction were
    sent together.
    """
    return f"""
    SELECT
        (copy * {clients} + assigned.client)::INTEGER AS client,
        chosen.number = of_sessions.first AS opens,
        chosen.number = of_transactions.first AS begins,
        chosen.number = of_transactions.last AS ends,
        {pipelines} AND NOT is_block AND prepared IS NOT NULL AND chosen.number <> of_transactions.last AS pipelined,
        chosen.number IS NOT DISTINCT FROM of_prepared.last AS last_use,
        error IS NOT NULL AS failed,
        command IN ('discard', 'deallocate') AS discards,
        epoch_us(started_at) - began + (copy * gap / {copies})::BIGINT AS at_us,
        duration_us,
        places.kind,
        places.place,
        prepared,
        chosen.text,
        parameters,
        parameter_types AS types,
        (keys.slot + copy * {slots})::INTEGER AS key_slot,
        keys.result AS key_result,
        keys.rows AS key_rows,
        replaced.places AS key_places,
        replaced.lengths AS key_lengths,
        list_transform(replaced.slots, lambda slot: (slot + copy * {slots})::INTEGER) AS key_slots
    FROM chosen
    CROSS JOIN (SELECT unnest(range({copies})) AS copy)
    CROSS JOIN (
        SELECT min(epoch_us(started_at)) AS began,
            (max(epoch_us(started_at)) - min(epoch_us(started_at))) / count(DISTINCT transaction) AS gap
        FROM chosen
    )
    JOIN assigned USING (session)
    JOIN (SELECT session, min(number) AS first FROM chosen GROUP BY 1) AS of_sessions USING (session)
    LEFT JOIN (
        SELECT session, prepared, max(number) AS last FROM chosen WHERE prepared IS NOT NULL GROUP BY 1, 2
    ) AS of_prepared USING (session, prepared)
    JOIN of_transactions USING (transaction)
    LEFT JOIN shapes USING (shape)
    JOIN places ON places.kind = coalesce(shapes.kind, (SELECT count(*) FROM shapes))
        AND places.template = chosen.template
    LEFT JOIN keys ON keys.maker = chosen.number
    LEFT JOIN replaced ON replaced.number = chosen.number
    ORDER BY copy, assigned.client, assigned.rank, chosen.number
    """
