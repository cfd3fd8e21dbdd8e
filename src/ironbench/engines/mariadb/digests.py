"""Collects statements of a running server for a capture. Rates come from the digests in performance_schema, and
literals from rows of the tables.

The server shows a digest as tokens, without literals: `SELECT NAME FROM `item` WHERE ID IN (...) LIMIT ?`. Sources:
MariaDB Knowledge Base, "Performance Schema Digests"; MySQL manual, "Performance Schema Statement Digests and Sampling".
"""

from __future__ import annotations

import random
import re
import string
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from ironbench.engines.mariadb.copies import quoted
from ironbench.engines.mariadb.observers import statements as statistics
from ironbench.engines.parameter_columns import columns_of_parameters, inserted_parameters
from ironbench.errors import FailureError, InputError
from ironbench.model.digest import Digests, StatementDigest, Wait
from ironbench.model.note import note
from ironbench.model.session import Session

_SETS = 500
"""How many texts with different literals are generated for a statement, at most."""
_MOST_LITERALS = 200_000
"""How many literals are generated for a statement, at most, in all its texts."""
_MOST_ROWS = 1000
"""Maximum number of rows of a generated INSERT."""
_LISTED_VALUES = 3
"""Number of values in a list such as `in (...)`, if the number of rows does not show how many there are."""
_SAMPLE = 200
"""Number of rows of a table that are read by primary key, to draw values of a column."""
_FIRST_ROWS = 1000
"""Number of rows that are read instead from a table without a primary key of whole numbers."""
_LONGEST_VALUE = 1000
_LONGEST_NAME_BYTES = 64 * 4

_RUNS = ("select", "insert", "update", "delete", "with", "values", "replace")
_CONTROL = ("begin", "start", "commit", "rollback", "savepoint", "release")
"""First words of statements that are left out, because each call of the others becomes a separate transaction."""
_TOKEN = re.compile(r"`[^`]*`|/\*.*?\*/|@*[^\s`]+|@+")
_SPACED = frozenset(
    (
        *("IN", "VALUES", "WHERE", "AND", "OR", "NOT", "ON", "FROM", "JOIN", "EXISTS", "SELECT", "USING", "AS", "BY"),
        *("UNION", "ALL", "ANY", "SET", "HAVING", "WHEN", "THEN", "ELSE"),
    )
)
"""Words that have a space before a parenthesis. The server regards other words as functions, which may have none."""
_BEFORE_TABLE = ("FROM", "JOIN", "UPDATE", "INTO")
_ROWS = re.compile(
    r"(\binto\s+(?P<table>`[^`]+`|\w+)\s*(?:\((?P<names>[^)]*)\)\s*)?values\s*)"
    r"(?P<rows>(?:\((?:[^()]|\([^()]*\))*\)\s*,?\s*)+)(?P<more>/\* , \.\.\. \*/)?",
    re.IGNORECASE,
)
_SLEEP = re.compile(r"\bsleep\s*\(\s*(\$\d+)", re.IGNORECASE)
_ROW = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_COMMA = re.compile(r",(?![^(]*\))")
_PLACE = re.compile(r"\bin \(\.\.\.\)|\?", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween (\$\d+) and (\$\d+)", re.IGNORECASE)
_NUMBERED = re.compile(r"`[^`]*`|\$\d+")
_QUALIFIED = re.compile(r"\b(?:from|join|update|into)\s+(?:`[^`]+`|\w+)\.", re.IGNORECASE)
_FILES = re.compile(r"\binto (?:outfile|dumpfile)\b", re.IGNORECASE)
_WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint")
_NUMBERS = (*_WHOLE, "decimal", "float", "double", "bit", "year")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_LARGE = ("tinytext", "text", "mediumtext", "longtext", "json")

_CALLS = """
    select digest, digest_text, count_star, sum_timer_wait, sum_rows_sent + sum_rows_affected
      from performance_schema.events_statements_summary_by_digest
     where schema_name = database() and digest is not null
"""
_UNSEEN = """
    select (select sum(count_star) from performance_schema.events_statements_summary_global_by_event_name
             where event_name = 'statement/com/Execute'),
           (select variable_value from performance_schema.global_status
             where variable_name = 'Performance_schema_digest_lost')
"""
_SESSIONS = "select count(*) from information_schema.processlist where db = database() and id <> connection_id()"
_COLUMNS = """
    select column_name, lower(data_type), coalesce(character_maximum_length, 0), column_type
      from information_schema.columns where table_schema = database() and table_name = {} order by ordinal_position
"""
# For each index, the last column. A foreign key is excluded, because its values occur in another table.
_UNIQUE = """
    select s.column_name from information_schema.statistics s
     where s.table_schema = database() and s.table_name = {0} and s.non_unique = 0
       and not exists (select 1 from information_schema.statistics n
                        where n.table_schema = s.table_schema and n.table_name = s.table_name
                          and n.index_name = s.index_name and n.seq_in_index > s.seq_in_index)
       and (s.seq_in_index = 1 or not exists (
               select 1 from information_schema.key_column_usage k
                where k.table_schema = s.table_schema and k.table_name = s.table_name
                  and k.column_name = s.column_name and k.referenced_table_name is not null))
"""
_LEADING = """
    select column_name from information_schema.statistics
     where table_schema = database() and table_name = {} and index_type = 'BTREE' and seq_in_index = 1
"""
_KEY = """
    select column_name from information_schema.statistics
     where table_schema = database() and table_name = {} and index_name = 'PRIMARY' and seq_in_index = 1
"""
_TABLE_NAMES = "select table_name, table_type from information_schema.tables where table_schema = database()"
_REMEDIES = {
    "off": (
        "performance_schema is off",
        "add `performance_schema = ON` to the section [mysqld] of the server's configuration, and restart the server",
    ),
    "denied": (
        "the user may not read performance_schema",
        "run `grant select on performance_schema.* to …` with the name of the user",
    ),
    "not counted": (
        "performance_schema does not count statements",
        "run `update performance_schema.setup_consumers set enabled = 'YES' where name = 'statements_digest'`",
    ),
    "unknown": ("the tables of performance_schema cannot be read", "use the server's logs, or a proxy"),
}
"""Why a server cannot be watched, and what to do about it, by the result of `statements.seen`."""


def watch(session: Session, seconds: float, values: bool, wait: Wait) -> Digests:
    """Watches the server for `seconds`. Raises InputError and FailureError.

    `values`: whether literals may be values of columns. Otherwise, the literals are arbitrary values of the right type.
    """
    if (seen := statistics.seen(session)) != "yes":
        raise InputError("--from", *_REMEDIES[seen])
    ((longest,),) = session.query("select least(@@max_digest_length, @@performance_schema_max_digest_length)")
    counters = session.counters()
    connected = 1

    def count_sessions() -> None:
        nonlocal connected
        ((count,),) = session.query(_SESSIONS)
        connected = max(connected, int(count or 0))

    count_sessions()
    before = _calls(session)
    unseen_before = [int(one or 0) for one in session.query(_UNSEEN)[0]]
    began_us = time.time_ns() // 1000
    wait(seconds, count_sessions)
    length_s = time.time_ns() / 1e9 - began_us / 1e6
    after = _calls(session)
    prepared, lost = (
        max(0, int(now or 0) - then) for now, then in zip(session.query(_UNSEEN)[0], unseen_before, strict=True)
    )
    count_sessions()
    grown = session.counters()
    counted = {name: grown[name] - count for name, count in counters.items() if name in grown and grown[name] >= count}
    ((database,),) = session.query("select database()")
    found, drawing = [], _Drawing(session, values, int(longest or 0))
    for id, (text, calls, picoseconds, rows) in sorted(after.items(), key=lambda one: -one[1][2]):
        _, calls_before, ps_before, rows_before = before.get(id, ("", 0, 0, 0))
        more = calls - calls_before
        # Statements of ironbench and of other monitoring programs are not part of the workload.
        is_monitoring = "performance_schema" in text or "processlist" in text
        if more > 0 and not is_monitoring and _command(text) not in _CONTROL:
            mean_s = (picoseconds - ps_before) / 1e12 / more
            found.append(drawing.digest(text, more, mean_s, rows - rows_before))
    if prepared and all(one.refused for one in found):
        cause = f"performance_schema contains the text of no prepared statement, of which {prepared} ran"
        raise InputError("--from", cause, "use a proxy: ironbench capture --listen ADDRESS --to DSN")
    notes = [note("capture-prepared-unseen", statements=prepared)] if prepared else []
    if lost:
        setting = "performance_schema_digests_size"
        notes.append(note("statements-not-counted", count=lost, by="performance_schema", setting=setting))
    return Digests(database or "", began_us, length_s, connected, tuple(found), counted, notes=tuple(notes))


def _calls(session: Session) -> dict[str, tuple[str, int, int, int]]:
    return {
        id or "": (text or "", int(calls or 0), int(picoseconds or 0), int(rows or 0))
        for id, text, calls, picoseconds, rows in session.query(_CALLS)
    }


@dataclass(slots=True)
class _Column:
    kind: str
    length: int
    """Maximum number of characters or bytes, or 0 if the type has none."""
    allowed: tuple[str, ...]
    """Values of an ENUM or SET."""
    unique: bool
    """Whether new rows need a new value in this column."""
    leading: bool
    """Whether an index starts with the column, so that the server finds its maximum without a scan of the table."""
    sample: Sequence[str | None] = ()
    last: int | None = None
    """Largest number in the column or in the sample, for unique columns of whole numbers in inserted rows."""
    made: int = 0
    """Number of values that were generated for inserted rows."""


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    """Text with `$1` and so on in place of literals."""
    lists: frozenset[int]
    """Numbers of the literals that are lists of values."""
    places: int


class _Drawing:
    def __init__(self, session: Session, values: bool, longest: int) -> None:
        self._session, self._values, self._longest = session, values, longest
        self._random = random.Random(1)
        self._tables = {str(name): kind == "BASE TABLE" for name, kind in session.query(_TABLE_NAMES)}
        self._columns: dict[str, dict[str, _Column]] = {}
        """Columns of each table. Names of columns are in lower case, and in the order of the table."""
        self._drawn: set[tuple[str, str]] = set()

    def digest(self, digest: str, calls: int, mean_s: float, rows: int) -> StatementDigest:
        command = _command(digest)
        shown = self._readable(digest)
        refused = ""
        if command not in _RUNS:
            return StatementDigest(command, "", calls, mean_s, rows, refused="utility")
        if self._is_cut(digest):
            refused = "cut-digest"
        elif ";" in digest:
            refused = "several-statements"
        elif _QUALIFIED.search(shown):
            refused = "other-database"
        elif _FILES.search(shown):
            refused = "server-wide"
        statement = None if refused else self._numbered(shown, max(1, round(rows / calls)))
        if statement is None:
            return StatementDigest(shown, "", calls, mean_s, rows, refused=refused or "unknown-arguments")
        found = columns_of_parameters(statement.text, self._names, lambda *place: self._column(*place) is not None)
        known = {number: column for number, place in found.items() if (column := self._column(*place)) is not None}
        inserted = inserted_parameters(statement.text)
        if not inserted and command in ("insert", "replace") and not re.search(r"\bselect\b", shown, re.IGNORECASE):
            inserted = frozenset(known)  # insert into … set …
        if self._values:
            for number, column in known.items():
                self._draw(*found[number])
                if number in inserted:
                    self._find_last(*found[number], column)
        sizes = {
            number: min(100, max(2, round(rows / calls)))
            if (column := known.get(number)) and column.unique
            else _LISTED_VALUES
            for number in statement.lists
        }
        count = min(calls, _SETS, max(1, _MOST_LITERALS // max(1, statement.places))) if statement.places else 1
        texts = []
        for _ in range(count):
            literals = {
                f"${number}": ", ".join(
                    self._literal(known.get(number), number in inserted) for _ in range(sizes.get(number, 1))
                )
                for number in range(1, statement.places + 1)
            }
            for low, high in _BETWEEN.findall(statement.text):
                column = known.get(int(low[1:]))
                if column and column.kind in _WHOLE and literals[low].lstrip("-").isdigit():
                    least = int(literals[low])
                    many = max(1, round(rows / calls)) - 1
                    literals[high] = str(least + many if column.unique else max(least, int(literals[high])))
            # With an arbitrary number of seconds, a session of the replay would wait longer than recorded.
            literals |= dict.fromkeys(_SLEEP.findall(statement.text), f"{mean_s:.6f}")
            texts.append(_NUMBERED.sub(partial(_replaced, literals), statement.text))
        if not self._is_valid(texts[0]):
            return StatementDigest(shown, "", calls, mean_s, rows, refused="not-preparable")
        drawn = sum(bool(column.sample) for column in known.values())
        return StatementDigest(
            shown, "", calls, mean_s, rows, texts=tuple(texts), drawn=drawn, made_up=statement.places - drawn
        )

    def _is_cut(self, digest: str) -> bool:
        """Returns whether the digest may lack the end of the statement. MariaDB does not show this. In the server's
        memory, a token has two bytes, and a name also its length and characters (sql/sql_digest.cc). The name that did
        not fit is unknown, so the digest may be complete if it is nearly as long as the limit."""
        if not digest or re.search(r"(?<![(,])(?<!, )\.\.\.$", digest):
            return True
        used = sum(4 + len(one.encode()) - 2 if one[0] == "`" else 2 for one in _TOKEN.findall(digest))
        return used + 4 + _LONGEST_NAME_BYTES > self._longest

    def _readable(self, digest: str) -> str:
        """Returns the digest with the spaces that people write. In addition, names of tables that are keywords are
        written as in the schema, because the server shows them in upper case."""
        # MariaDB shows literals such as x'00' as an unknown token.
        tokens = _TOKEN.findall(digest.replace("(unknown)", "?"))
        by_case = {name.lower(): name for name in self._tables}
        text = ""
        for place, token in enumerate(tokens):
            before = tokens[place - 1] if place else ""
            after = tokens[place + 1] if place + 1 < len(tokens) else ""
            glued = not place or token in (",", ")", ".") or before in ("(", ".") or before.strip("@") == ""
            if token[0] == "(":
                is_name = before[-1:] == "`" and tokens[place - 2] not in _BEFORE_TABLE
                glued = glued or is_name or (before.isalpha() and before not in _SPACED)
            if token.isalpha() and token.lower() in by_case and (before in _BEFORE_TABLE or after == "."):
                token = quoted(by_case[token.lower()])
            text += token if glued else f" {token}"
        return text

    def _numbered(self, text: str, rows: int) -> _Statement | None:
        """Returns the statement with numbers in place of literals. Returns None if the number of literals in a list
        is unknown. `rows`: number of rows that a call returned or changed."""

        def values(found: re.Match[str]) -> str:
            names = found["names"].split(",") if found["names"] else self._names(found["table"])
            row = _ROW.sub(lambda one: f"({_with_all_values(one[1], len(names))})", found["rows"]).rstrip()
            return found[1] + (", ".join([row] * min(max(2, rows), _MOST_ROWS)) if found["more"] else f"{row} ")

        text = _ROWS.sub(values, text).strip()
        text = re.sub(r"\blimit \?, \.\.\.", f"LIMIT 0, {rows}", text, flags=re.IGNORECASE)
        text = re.sub(r"\blimit \?", f"LIMIT {rows}", text, flags=re.IGNORECASE)
        text = re.sub(r"\boffset \?", "OFFSET 0", text, flags=re.IGNORECASE)
        text = re.sub(r"\b(order|group) by \?", r"\1 by 1", text, flags=re.IGNORECASE)
        lists: set[int] = set()
        places = 0

        def numbered(found: re.Match[str]) -> str:
            nonlocal places
            places += 1
            if found[0] == "?":
                return f"${places}"
            lists.add(places)
            return f"IN (${places})"

        text = _PLACE.sub(numbered, re.sub(r"/\* , \.\.\. \*/", "", text))
        return None if "..." in text or "@$" in text else _Statement(text, frozenset(lists), places)

    def _is_valid(self, text: str) -> bool:
        """Returns whether the server can prepare the statement."""
        escaped = text.replace("\\", "\\\\").replace("'", "''")
        try:
            self._session.query(f"prepare ironbench_digest from '{escaped}'")
        except FailureError as error:
            if not error.sqlstate or error.sqlstate.startswith("08"):
                raise
            return False
        self._session.query("deallocate prepare ironbench_digest")
        return True

    def _names(self, table: str) -> Sequence[str]:
        return list(self._of(table))

    def _column(self, table: str, name: str) -> _Column | None:
        return self._of(table).get(_plain(name).lower())

    def _of(self, table: str) -> dict[str, _Column]:
        name = _plain(table)
        if name not in self._columns:
            text = _literal("", name)
            unique = {one for (one,) in self._session.query(_UNIQUE.format(text))}
            leading = {one for (one,) in self._session.query(_LEADING.format(text))}
            self._columns[name] = {
                (column or "").lower(): _Column(
                    kind or "",
                    int(length or 0),
                    tuple(one.replace("''", "'") for one in re.findall(r"'((?:[^']|'')*)'", allowed or ""))
                    if kind in ("enum", "set")
                    else (),
                    column in unique,
                    column in leading,
                )
                for column, kind, length, allowed in self._session.query(_COLUMNS.format(text))
            }
        return self._columns[name]

    def _draw(self, table: str, name: str) -> None:
        """Reads values of a column. Reads rows with random primary keys, or else the first rows."""
        table, name = _plain(table), _plain(name)
        column = self._columns[table][name.lower()]
        if (table, name.lower()) in self._drawn or not self._tables.get(table):
            return
        self._drawn.add((table, name.lower()))
        of, place = quoted(table), quoted(name)
        value = (
            f"hex({place})"
            if column.kind in _BYTES
            else f"{place} + 0"
            if column.kind == "bit"
            else f"left({place}, {_LONGEST_VALUE})"
            if column.kind in _LARGE
            else place
        )
        key = next((one or "" for (one,) in self._session.query(_KEY.format(_literal("", table)))), "")
        if key and self._columns[table][key.lower()].kind in _WHOLE:
            ((low, high),) = self._session.query(f"select min({quoted(key)}), max({quoted(key)}) from {of}")
            if low is not None and high is not None:
                # A further random offset reaches all rows with the same first column of the primary key.
                rows = self._session.query(
                    " union all ".join(
                        f"(select {value} from {of} where {quoted(key)} >= {self._random.randint(int(low), int(high))} "
                        f"order by {quoted(key)} limit 1 offset {self._random.randrange(10)})"
                        for _ in range(_SAMPLE)
                    )
                )
                column.sample = [one for (one,) in rows]
        if not column.sample:
            column.sample = [one for (one,) in self._session.query(f"select {value} from {of} limit {_FIRST_ROWS}")]

    def _find_last(self, table: str, name: str, column: _Column) -> None:
        """Finds the largest number in a column for which inserted rows need new numbers. Without an index, the largest
        number of the sample is used, because the server would have to read the whole table."""
        if not column.unique or column.kind not in _WHOLE or column.last is not None:
            return
        if not self._tables.get(_plain(table)):
            return
        numbers = column.sample
        if column.leading:
            rows = self._session.query(f"select max({quoted(_plain(name))}) from {quoted(_plain(table))}")
            numbers = [one for (one,) in rows]
        column.last = max((int(one) for one in numbers if one is not None), default=0)

    def _literal(self, column: _Column | None, inserted: bool) -> str:
        if column is None:
            return str(self._random.randint(1, 9))
        if column.unique and inserted:
            if column.last is None:
                return self._arbitrary(column)
            column.made += 1
            return str(column.last + column.made)
        sample = column.sample if inserted else [one for one in column.sample if one is not None]
        if not sample:
            return self._arbitrary(column)
        return _literal(column.kind, self._random.choice(sample))

    def _arbitrary(self, column: _Column) -> str:
        draw, kind = self._random, column.kind
        letters = "".join(draw.choices(string.ascii_lowercase, k=min(8, column.length or 8)))
        if column.allowed:
            return _literal(kind, draw.choice(column.allowed))
        if kind == "year":
            return str(draw.randint(1970, 2100))
        if kind in _NUMBERS:
            return str(draw.randint(1, 100 if kind in ("tinyint", "decimal") else 1 if kind == "bit" else 32_000))
        moment = datetime.now(UTC) - timedelta(seconds=draw.randint(0, 30 * 86400))
        formats = {"date": "%Y-%m-%d", "time": "%H:%M:%S", "datetime": "%Y-%m-%d %H:%M:%S"}
        formats["timestamp"] = formats["datetime"]
        if kind in formats:
            return _literal(kind, moment.strftime(formats[kind]))
        if kind == "uuid":
            return f"'{draw.getrandbits(128):032x}'"
        if kind == "json":
            return "'{}'"
        return _literal(kind, letters.encode().hex() if kind in _BYTES else letters)


def _with_all_values(row: str, columns: int) -> str:
    """Returns the values of a row with a `?` for each literal. A digest shows `?, ...` in place of several literals."""
    if row.strip() == "...":
        return ", ".join("?" * columns)
    values = [one.strip() for one in _COMMA.split(row)]
    if values.count("...") != 1 or columns < len(values):
        return row
    place = values.index("...")
    values[place : place + 1] = "?" * (columns - len(values) + 1)
    return ", ".join(values)


def _replaced(literals: Mapping[str, str], found: re.Match[str]) -> str:
    return literals.get(found[0], found[0])


def _literal(kind: str, value: str | None) -> str:
    if value is None:
        return "NULL"
    if kind in _BYTES:
        return f"x'{value}'"
    if kind in _NUMBERS:
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _command(digest: str) -> str:
    words = digest.lstrip(" (").split(None, 1)
    return words[0].lower() if words else ""


def _plain(name: str) -> str:
    return name.strip().strip("`")
