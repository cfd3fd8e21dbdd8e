"""Collects statements of a running server for a capture. Rates come from pg_stat_statements, and values of parameters
from pg_stats."""

from __future__ import annotations

import json
import random
import re
import string
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ironbench import _core
from ironbench.engines.parameter_columns import columns_of_parameters, inserted_parameters
from ironbench.engines.postgres.observers import statements as statistics
from ironbench.errors import FailureError, InputError
from ironbench.model.digest import Digests, StatementDigest, Wait
from ironbench.model.session import Session

_SETS = 500
"""How many combinations of parameter values are generated for a statement, at most."""
_RUNS = ("select", "insert", "update", "delete", "with", "values", "table", "merge")
_CONTROL = ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release")
"""First words of statements that are left out, because each call of the others becomes a separate transaction."""
_HIDDEN = "<insufficient privilege>"
_TYPED = re.compile(r"\b(interval|date|time|timestamp|timestamptz)\s+\$(\d+)", re.IGNORECASE)
"""Pattern of a parameter after a type name. pg_stat_statements shows `interval '1 day'` as `interval $1`, but
PostgreSQL's grammar does not allow a parameter there."""
_COMMENTS = re.compile(r"\A(?:\s+|/\*.*?\*/|--[^\n]*(?:\n|\Z))+", re.DOTALL)
"""Pattern of the comments before a statement. Some frameworks write the place in the code there."""
_LIMIT = re.compile(r"\blimit\s+\$(\d+)", re.IGNORECASE)
_UNKNOWN_TYPE = "42P18"
"""SQLSTATE for a parameter with an unknown type, for example an argument of `jsonb_build_object`."""
_AMBIGUOUS = "42725"
"""SQLSTATE for an operator between two parameters with unknown types, such as `$1 + $2`."""
_LEFT_OPERAND = re.compile(r"(\$\d+\b)(?!::)(?=\s*[-+*/%](?![->]))")
_RIGHT_OPERAND = re.compile(r"([-+*/%]\s*\$\d+\b)(?!::)")
_SLEEP = re.compile(r"\bpg_sleep(?:_for)?\s*\(\s*\$(\d+)", re.IGNORECASE)
_WHOLE = ("smallint", "integer", "bigint")


@dataclass(slots=True)
class _Column:
    """Statistics of a column."""

    common: Sequence[str] = ()
    frequencies: Sequence[float] = ()
    bounds: Sequence[str] = ()
    nulls: float = 0.0
    unique: bool = False
    """Whether new rows need a new value in this column, because the column alone has a unique index, or because it is
    the last column of a unique index and refers to no other table."""
    last: int | None = None
    """Largest number in the column, for unique columns of whole numbers."""
    is_array: bool = False
    made: int = field(default=0)
    """Number of values that were generated for inserted rows."""


def watch(session: Session, seconds: float, values: bool, wait: Wait) -> Digests:
    """Watches the server for `seconds`. Raises InputError and FailureError.

    `values`: whether parameters may get values from the statistics of columns. The statistics contain real values of
    the columns. Otherwise, parameters get arbitrary values of the right type.
    """
    known = statistics.state(session)
    if not known.loaded or known.schema is None:
        way = "run `create extension pg_stat_statements`"
        if not known.loaded:
            way = f"add pg_stat_statements to shared_preload_libraries, restart the server, and {way}"
        raise InputError("--from", "the server has no pg_stat_statements", way)
    columns = "total_exec_time" if known.version >= 130000 else "total_time"
    sql = (
        f"select s.userid::regrole::text, s.queryid::text, sum(s.calls), sum(s.{columns}), sum(s.rows) "
        f"from {known.schema}.{statistics.EXTENSION}(false) s where s.dbid = "
        "(select oid from pg_database where datname = current_database()) group by 1, 2"
    )
    sessions = (
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
        "and backend_type = 'client backend'"
    )
    counters = session.counters()
    connected = 1

    def count_sessions() -> None:
        nonlocal connected
        ((count,),) = session.query(sessions)
        connected = max(connected, int(count or 0))

    count_sessions()
    # Until the counters are read again, ironbench only counts sessions.
    before = _calls(session, sql)
    began_us = time.time_ns() // 1000
    wait(seconds, count_sessions)
    length_s = time.time_ns() / 1e9 - began_us / 1e6
    after = _calls(session, sql)
    count_sessions()
    grown = session.counters()
    counted = {name: grown[name] - count for name, count in counters.items() if name in grown and grown[name] >= count}
    ran = [
        (key, calls - were[0], ms - were[1], rows - were[2])
        for key, (calls, ms, rows) in after.items()
        if calls > (were := before.get(key, (0, 0.0, 0)))[0]
    ]
    texts = _texts(session, known.view)
    ((database,),) = session.query("select current_database()")
    found, hidden, drawing = [], 0, _Drawing(session, values)
    for (user, id), calls, ms, rows in sorted(ran, key=lambda one: -one[1]):
        text = texts.get((user, id), _HIDDEN)
        if text == _HIDDEN or not id:
            hidden += calls
        elif statistics.EXTENSION not in text and "pg_stat_" not in text and _command(text) not in _CONTROL:
            found.append(drawing.digest(text, user, calls, ms / 1000 / calls, rows))
    return Digests(database or "", began_us, length_s, connected, tuple(found), counted, hidden)


def _calls(session: Session, sql: str) -> dict[tuple[str, str], tuple[int, float, int]]:
    return {
        (user or "", id or ""): (int(calls or 0), float(ms or 0), int(rows or 0))
        for user, id, calls, ms, rows in session.query(sql)
    }


def _texts(session: Session, view: str) -> dict[tuple[str, str], str]:
    rows = session.query(
        f"select userid::regrole::text, queryid::text, min(query) from {view} s where s.dbid = "
        "(select oid from pg_database where datname = current_database()) group by 1, 2"
    )
    return {(user or "", id or ""): _COMMENTS.sub("", text or "") for user, id, text in rows}


class _Drawing:
    def __init__(self, session: Session, values: bool) -> None:
        self._session, self._values = session, values
        self._random = random.Random(1)
        self._columns: dict[tuple[str, str], _Column | None] = {}

    def digest(self, text: str, user: str, calls: int, mean_s: float, rows: int) -> StatementDigest:
        if not self._values:
            # The text contains the comments of one execution, which may contain values. The text also contains its
            # literals, if the server had forgotten the statement before it ended.
            text = _core.masked_statement(text)
        text = _TYPED.sub(lambda found: f"${found[2]}::{found[1]}", text)
        command = _command(text)
        if command not in _RUNS:
            return StatementDigest(command, user, calls, mean_s, rows, refused="utility")
        prepared = self._prepared(text)
        if prepared is None:
            return StatementDigest(text, user, calls, mean_s, rows, refused="not-preparable")
        text, types = prepared
        if any(kind.startswith("reg") for kind in types):  # for example nextval($1)
            return StatementDigest(text, user, calls, mean_s, rows, refused="object-parameter")
        sources = self._sources(text)
        pairs = [(kind, sources.get(number)) for number, kind in enumerate(types, 1)]
        inserted = inserted_parameters(text)
        sets = tuple(
            tuple(self._value(kind, column, number in inserted) for number, (kind, column) in enumerate(pairs, 1))
            for _ in range(min(calls, _SETS) if types else 0)
        )
        limits = {int(one) - 1 for one in _LIMIT.findall(text)}
        if limits:
            sets = tuple(tuple("10" if place in limits else one for place, one in enumerate(each)) for each in sets)
        # An arbitrary number of seconds could stop a session of the replay for hours.
        sleeps = {int(one) - 1 for one in _SLEEP.findall(text)}
        if sleeps:
            slept = f"{mean_s:.6f}"
            sets = tuple(tuple(slept if place in sleeps else one for place, one in enumerate(each)) for each in sets)
        drawn = sum(column is not None for _, column in pairs)
        return StatementDigest(text, user, calls, mean_s, rows, sets, drawn, len(pairs) - drawn)

    def _prepared(self, text: str) -> tuple[str, list[str]] | None:
        """Returns the statement and the types of its parameters. Adds a type to parameters whose type the server cannot
        determine, because a literal has a type, but a parameter in its place has none. Returns None if the server
        cannot prepare the statement."""
        name = "ironbench_digest"
        while True:
            try:
                self._session.query(f"prepare {name} as {text}")
                break
            except FailureError as error:
                if not error.sqlstate or error.sqlstate.startswith(("08", "57")):
                    raise
                typed = _with_types(text, error)
                if typed == text:
                    return None
                text = typed
        try:
            ((types,),) = self._session.query(
                f"select to_json(parameter_types::text[]) from pg_prepared_statements where name = '{name}'"
            )
        finally:
            self._session.query(f"deallocate {name}")
        return text, list(json.loads(types or "[]"))

    def _sources(self, text: str) -> dict[int, _Column]:
        """Returns, for each parameter, the statistics of its column. The column is the one that the parameter is
        compared with or stored in. Parameters with an unknown column are missing."""
        found = columns_of_parameters(text, self._columns_of, lambda *place: self._column(*place) is not None)
        known = {number: self._column(*place) for number, place in found.items()}
        return {number: column for number, column in known.items() if column is not None}

    def _columns_of(self, table: str) -> list[str]:
        rows = self._session.query(
            f"select quote_ident(attname) from pg_attribute where attrelid = to_regclass({_quoted(table)}) "
            "and attnum > 0 and not attisdropped order by attnum"
        )
        return [name or "" for (name,) in rows]

    def _column(self, table: str, name: str) -> _Column | None:
        key = (table, name)
        if key not in self._columns:
            self._columns[key] = self._read(table, name) if self._values else None
        return self._columns[key]

    def _read(self, table: str, name: str) -> _Column | None:
        plain = name[1:-1] if name.startswith('"') else name.lower()
        of_table = f"to_regclass({_quoted(table)})"
        rows = self._session.query(
            "select to_json(s.most_common_vals::text::text[]), to_json(s.most_common_freqs), "
            "to_json(s.histogram_bounds::text::text[]), s.null_frac, exists (select from pg_index i "
            f"where i.indrelid = {of_table} and i.indisunique and i.indkey[i.indnkeyatts - 1] = a.attnum "
            "and (i.indnkeyatts = 1 or not exists (select from pg_constraint f where f.conrelid = i.indrelid "
            "and f.contype = 'f' and a.attnum = any (f.conkey)))), "
            "a.atttypid::regtype::text "
            "from pg_stats s join pg_class c on c.relname = s.tablename join pg_namespace n on n.oid = c.relnamespace "
            "and n.nspname = s.schemaname join pg_attribute a on a.attrelid = c.oid and a.attname = s.attname "
            f"where c.oid = {of_table} and s.attname = {_quoted(plain)} and not s.inherited"
        )
        if not rows:
            return None
        common, frequencies, bounds, nulls, unique, kind = rows[0]
        column = _Column(
            json.loads(common or "null") or (),
            json.loads(frequencies or "null") or (),
            json.loads(bounds or "null") or (),
            float(nulls or 0.0),
            unique == "t",
            is_array=(kind or "").endswith("[]"),
        )
        if column.unique and kind in _WHOLE:
            ((last,),) = self._session.query(f"select max({name})::text from {table}")
            column.last = int(last or 0)
        return column if column.common or column.bounds or column.unique else None

    def _value(self, kind: str, column: _Column | None, inserted: bool) -> str | None:
        if column is None:
            return self._of_type(kind)
        if kind.endswith("[]") and not column.is_array:  # = any($1)
            value = self._value(kind.removesuffix("[]"), column, inserted=False)
            return "{" + json.dumps(value, ensure_ascii=False) + "}"
        if column.unique and inserted:
            if column.last is None:
                return self._of_type(kind)
            column.made += 1
            return str(column.last + column.made)
        draw = self._random.random()
        if inserted and draw < column.nulls:
            return None
        draw = self._random.random()
        for value, frequency in zip(column.common, column.frequencies, strict=False):
            if draw < frequency:
                return value
            draw -= frequency
        if len(column.bounds) > 1:
            return self._between_bounds(kind, column)
        return self._random.choice(column.common) if column.common else self._of_type(kind)

    def _between_bounds(self, kind: str, column: _Column) -> str:
        place = self._random.randrange(len(column.bounds) - 1)
        low, high = column.bounds[place : place + 2]
        if kind in _WHOLE and column.unique:
            return str(self._random.randint(int(low), int(high)))
        # A value between the two bounds may not occur in the column, so one of the bounds is used.
        return self._random.choice((low, high))

    def _of_type(self, kind: str) -> str:
        draw = self._random
        if kind in _WHOLE or kind in ("numeric", "real", "double precision"):
            return str(draw.randint(1, 32_000))
        if kind == "boolean":
            return draw.choice(("t", "f"))
        if kind == "uuid":
            return str(uuid.UUID(int=draw.getrandbits(128), version=4))
        if kind == "interval":
            return f"{draw.randint(1, 24)} hours"
        if kind == "date" or kind.startswith("timestamp"):
            moment = datetime.now(UTC) - timedelta(seconds=draw.randint(0, 30 * 86400))
            return moment.strftime("%Y-%m-%d" if kind == "date" else "%Y-%m-%d %H:%M:%S")
        if kind.endswith("[]"):
            return "{" + self._of_type(kind.removesuffix("[]")) + "}"
        if kind in ("json", "jsonb"):
            return "{}"
        if kind in ("character", '"char"'):
            return draw.choice(string.ascii_lowercase)  # fits columns of any length
        return "".join(draw.choices(string.ascii_lowercase, k=8))


def _with_types(text: str, error: FailureError) -> str:
    """Adds a type to the parameters that an error is about. Returns the same text if this cannot help."""
    if error.sqlstate == _UNKNOWN_TYPE and (found := re.search(r"\$\d+", error.cause)):
        return re.sub(rf"{re.escape(found[0])}\b(?!::)", f"{found[0]}::text", text)
    if error.sqlstate == _AMBIGUOUS:
        return _RIGHT_OPERAND.sub(r"\1::integer", _LEFT_OPERAND.sub(r"\1::integer", text))
    return text


def _command(text: str) -> str:
    words = text.lstrip(" (\n\t;").split(None, 1)
    return words[0].rstrip(";").lower() if words else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
