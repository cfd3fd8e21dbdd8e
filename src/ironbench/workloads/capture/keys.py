"""Generated keys: values that the server made when the work was recorded, and that later statements contain.

A log contains no results, so the keys are inferred. A statement that returns a generated key is called a *maker*. Its
template shows this (`CaptureTraits.generates`), for example by RETURNING. Later statements of the same session may
contain the generated keys. The numbers or UUIDs at one place of a statement are taken for keys if they behave like
keys:

- Numbers: all are different. Over all sessions, they grow with the time at which their makers ran. There are about as
many numbers as executions of makers. They do not occur in the maker or before it in its transaction: such a number is
the key of an earlier maker, for example of the row that a new row refers to. Values of a clock are excluded.
- UUIDs: all are different, and none occurs before its maker. The statement looks up a row by them, or contains no other
  UUID.

A capture from a proxy contains the keys that MySQL and MariaDB return for an INSERT. Then only the places where later
statements contain them are inferred: the number at a place is nearly always the session's last key, if it is within the
range of the generated keys. Other numbers at the place may be older keys.

An INSERT of several rows generates a key for each row. The keys are consecutive, and the first one is known or inferred
as above. If a capture does not contain the first key, the INSERT has one key for each row only if later statements
contain all of them; otherwise, only one key is known.

A replay sends the value that the server returns in place of the recorded one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import duckdb

from ironbench.workloads.capture import file

_LEAST = 5
"""Minimum number of values at a place. With fewer values, it is not possible to recognise them as keys."""
_WRONG = 0.01
"""Fraction of the values at a place that may break a rule. Some do, because several processes write the log and times
are in milliseconds."""
_AGREES = 0.9
"""Fraction of the numbers at a place that must be the session's last key, if the keys are known."""
_LATE_US = 100_000
"""Tolerance in microseconds for the order of makers. The tolerance is needed because times are in milliseconds, and
because durations do not include the time between Parse, Bind and Execute."""
_SPARE, _SPARE_COUNT = 4, 100
"""Limits for the range of numbers: as a multiple of the number of makers, and as a number of additional values. The
range is larger than the number of makers, because other statements also use the sequence."""
_SEEN = 0.5
"""Maximum fraction of the numbers at a place that may occur in the maker or before it in its transaction. Small keys
occur there by chance, for example as quantities."""
_NEAR_S = 86_400
"""A number counts as a value of a clock if it differs from the time of its statement by less than this number of
seconds."""
_TOKENS = r"'(?:[^']|'')*'|[A-Za-z_][A-Za-z0-9_$]*|[0-9][0-9.]*|[^A-Za-z0-9_']+|'"
"""Pattern of a token. Every character of a text belongs to a token."""
_NUMBER, _UUID = r"^[1-9][0-9]{0,17}$", r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_SEVERAL = r"\bvalues\b"
_UNCERTAIN = r"^(insert ignore|replace)\b|\bon (duplicate|conflict)\b"
"""Patterns of templates: of statements that can insert several rows, and of those that may insert fewer rows than their
text contains."""
_STRING, _NEXT_ROW = r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", r"\)\s*,\s*\("
"""Patterns of a string, and of the end of a row of VALUES that another row follows. Backslashes and double quotes are
those of MySQL. A text of PostgreSQL that contains them otherwise has a number of rows that differs from the recorded
number, so only its first key is replaced."""
_COLUMNS = re.compile(r"\breturning\b(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """Number of generated keys, and how many of them are known."""

    makers: int
    """Number of statements that return a generated key."""
    known: int
    """Number of makers whose key was found in a later statement."""
    values: int
    """Number of values in later statements that a replay replaces with new keys."""


def ignore(opened: duckdb.DuckDBPyConnection) -> KeyUse:
    """Creates the same tables as `infer`, but without rows."""
    opened.execute("CREATE TABLE keys (maker BIGINT, slot INTEGER, result INTEGER, rows INTEGER)")
    opened.execute("CREATE TABLE replaced (number BIGINT, places INTEGER[], lengths INTEGER[], slots INTEGER[])")
    return KeyUse(0, 0, 0)


def infer(opened: duckdb.DuckDBPyConnection, generates: str, masked: bool = False) -> KeyUse:
    """Finds generated keys in the table `chosen`. Creates the tables `keys` (maker, slot, result, rows) and
    `replaced` (number, places, lengths, slots). `slot` is the slot of the first of `rows` keys, which have consecutive
    slots. `result` is the number of the result column. `places` are numbers of parameters,
    starting at 1, or byte offsets of literals in the text. `generates`: pattern of makers (`CaptureTraits`). `masked`:
    whether keys are masked. The masks of consecutive keys are not consecutive, so only the first known key of an INSERT
    of several rows is used.
    """
    ((are_known,),) = file.asked(opened, "SELECT count(generated_key) > 0 FROM chosen")
    rows = "1" if masked and are_known else _rows()
    makes = "generated_key IS NOT NULL" if are_known else f"regexp_matches(template, {file.quoted(generates)})"
    # Texts of statements that are not makers are left out before the window function, which buffers all rows.
    opened.execute(f"""
        CREATE TABLE makers AS
        SELECT number, session, transaction, maker_template, begun_us, ended_us, step, generated_key, rows
        FROM (
            SELECT number, session, transaction, generated_key, epoch_us(started_at) AS begun_us,
                epoch_us(started_at) + coalesce(duration_us, 0) AS ended_us,
                row_number() OVER (PARTITION BY session ORDER BY number) AS step,
                CASE WHEN error IS NULL AND {makes} THEN template END AS maker_template,
                CASE WHEN error IS NULL AND {makes} THEN {rows} END AS rows
            FROM chosen
        )
        WHERE maker_template IS NOT NULL
    """)
    ((makers,),) = file.asked(opened, "SELECT count(*) FROM makers")
    ignore(opened)
    if makers < _LEAST:
        return KeyUse(makers, 0, 0)
    _find_values(opened, every_session=are_known)
    _follow(opened)
    if are_known:
        _place_known_keys(opened)
    else:
        _judge(opened)
        _name(opened)
    _choose(opened)
    ((known,),) = file.asked(opened, "SELECT count(*) FROM keys")
    ((values,),) = file.asked(opened, "SELECT coalesce(sum(len(places)), 0) FROM replaced")
    return KeyUse(makers, known, int(values))


def _rows() -> str:
    """Returns the SQL expression for the number of rows that a maker inserts. The number is 1 if it is unknown."""
    count = (
        f"1 + len(regexp_extract_all(regexp_replace(text, {file.quoted(_STRING)}, '', 'g'), {file.quoted(_NEXT_ROW)}))"
    )
    several = f"regexp_matches(template, {file.quoted(_SEVERAL)})"
    uncertain = f"regexp_matches(template, {file.quoted(_UNCERTAIN)})"
    return f"CASE WHEN NOT {several} OR {uncertain} OR coalesce(row_count, {count}) <> {count} THEN 1 ELSE {count} END"


def _find_values(opened: duckdb.DuckDBPyConnection, *, every_session: bool) -> None:
    """Creates the table `found` with the numbers and UUIDs in statements, and their places. Reads only sessions with
    makers, unless `every_session` is true."""
    kind = "LEFT" if every_session else "INNER"
    opened.execute(f"""
        CREATE TABLE found AS
        WITH after AS (
            SELECT chosen.*, row_number() OVER (PARTITION BY session ORDER BY number) AS step FROM chosen
            {kind} JOIN (SELECT session, min(number) AS first FROM makers GROUP BY 1) AS began USING (session)
        ), tokens AS (
            SELECT number, session, transaction, template, started_at, step,
                generate_subscripts(parameters, 1) AS place, unnest(parameters) AS value, true AS bound
            FROM after WHERE prepared IS NOT NULL
            UNION ALL
            SELECT number, session, transaction, template, started_at, step, generate_subscripts(pieces, 1),
                trim(unnest(pieces), ''''), false
            FROM (
                SELECT *, regexp_extract_all(text, {file.quoted(_TOKENS)}) AS pieces FROM after WHERE prepared IS NULL
            )
        )
        SELECT number, session, transaction, template, step, place, bound, value, value NOT LIKE '%-%' AS is_number,
            epoch(started_at) AS at_s
        FROM tokens
        WHERE regexp_matches(value, {file.quoted(_NUMBER)}) OR regexp_matches(value, {file.quoted(_UUID)})
    """)


def _follow(opened: duckdb.DuckDBPyConnection) -> None:
    """Creates the table `followed` with the first value at each place after each maker, and whether the value already
    occurs in the maker or before it in its transaction (`is_seen`)."""
    opened.execute("""
        CREATE TABLE followed AS
        WITH each AS (
            SELECT found.*, maker_template
            FROM found JOIN (SELECT DISTINCT session, maker_template FROM makers) USING (session)
        ), joined AS (
            SELECT each.*, makers.number AS maker, makers.transaction AS maker_transaction, begun_us, ended_us,
                each.step - makers.step AS distance
            FROM each ASOF JOIN makers ON each.session = makers.session
                AND each.maker_template = makers.maker_template AND each.number > makers.number
        ), first_values AS (
            SELECT maker_template, template, place, is_number, maker, any_value(session) AS session,
                arg_min(value, number) AS value, arg_min(at_s, number) AS at_s, min(distance) AS distance,
                any_value(begun_us) AS begun_us, any_value(ended_us) AS ended_us,
                any_value(maker_transaction) AS maker_transaction
            FROM joined GROUP BY maker_template, template, place, is_number, maker
        )
        SELECT first_values.*, coalesce(found.transaction = maker_transaction, false) AS is_seen
        FROM first_values ASOF LEFT JOIN found ON first_values.session = found.session
            AND first_values.value = found.value AND first_values.maker >= found.number
    """)


def _judge(opened: duckdb.DuckDBPyConnection) -> None:
    """Creates the table `trusted` with the places whose values behave like keys."""
    numbers = f"""
        WITH numbers AS (SELECT *, value::BIGINT AS key FROM followed WHERE is_number), ordered AS (
            SELECT *,
                key <= lag(key) OVER (PARTITION BY maker_template, template, place, session ORDER BY maker) AS falls,
                begun_us > {_LATE_US} + min(ended_us) OVER (
                    PARTITION BY maker_template, template, place ORDER BY key
                    ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
                ) AS late,
                abs(key - at_s) < {_NEAR_S} OR abs(key - at_s * 1e3) < {_NEAR_S}e3
                    OR abs(key - at_s * 1e6) < {_NEAR_S}e6 AS is_clock
            FROM numbers
        )
        SELECT maker_template, template, place, true AS is_number, count(*) AS makers,
            (max(key) - min(key) + 1)::DOUBLE AS width, median(distance) AS distance
        FROM ordered GROUP BY 1, 2, 3
        HAVING count(*) >= {_LEAST} AND count(DISTINCT key) >= (1 - {_WRONG}) * count(*)
            AND count(*) FILTER (falls) <= {_WRONG} * count(*) AND count(*) FILTER (late) <= {_WRONG} * count(*)
            AND count(*) FILTER (is_seen) <= {_SEEN} * count(*) AND NOT bool_or(is_clock)
            AND max(key) - min(key) <= {_SPARE} * (SELECT sum(rows) FROM makers) + {_SPARE_COUNT}
    """
    uuids = f"""
        WITH first_seen AS (SELECT value, min(number) AS seen FROM found WHERE NOT is_number GROUP BY 1), fresh AS (
            SELECT followed.*, seen <= maker AS is_old
            FROM followed JOIN first_seen USING (value) WHERE NOT is_number
        ), uuid_places AS (
            SELECT template, count(DISTINCT place) AS alike FROM found WHERE NOT is_number GROUP BY 1
        )
        SELECT maker_template, template, place, false AS is_number, count(*) AS makers, 0.0 AS width,
            median(distance) AS distance
        FROM fresh JOIN uuid_places USING (template) GROUP BY 1, 2, 3
        HAVING count(*) >= {_LEAST} AND count(DISTINCT value) >= (1 - {_WRONG}) * count(*)
            AND count(*) FILTER (is_old) <= {_WRONG} * count(*)
            AND (any_value(alike) = 1 OR NOT starts_with(template, 'insert'))
    """
    # If several makers may have generated the values at a place, the nearest one before the values is trusted.
    opened.execute(f"""
        CREATE TABLE trusted AS
        SELECT * FROM (FROM ({numbers}) UNION ALL FROM ({uuids}))
        QUALIFY rank() OVER (PARTITION BY template, place, is_number ORDER BY distance) = 1
    """)


def _place_known_keys(opened: duckdb.DuckDBPyConnection) -> None:
    """Creates the tables `agreeing` and `named` from keys that the capture contains."""
    opened.execute(f"""
        CREATE TABLE agreeing AS
        WITH bounds AS (
            SELECT maker_template, min(generated_key) AS low, max(generated_key) AS high FROM makers GROUP BY 1
        )
        SELECT followed.maker_template, template, place FROM followed
        JOIN makers ON makers.number = followed.maker JOIN bounds ON bounds.maker_template = followed.maker_template
        WHERE is_number AND value::UBIGINT BETWEEN low AND high
        GROUP BY 1, 2, 3
        HAVING count(*) FILTER (value::UBIGINT BETWEEN generated_key AND generated_key + rows - 1)
                >= greatest({_LEAST}, {_AGREES} * count(*))
            AND count(*) FILTER (is_seen) <= {_SEEN} * count(*)
    """)
    opened.execute("""
        CREATE TABLE named AS
        WITH generated AS (
            SELECT *, (generated_key + nth)::VARCHAR AS value
            FROM (
                SELECT number AS maker, maker_template, generated_key, rows, unnest(range(rows)) AS nth FROM makers
            )
        )
        SELECT DISTINCT maker, generated.maker_template, found.value, nth, rows
        FROM generated JOIN agreeing USING (maker_template)
        JOIN found ON found.template = agreeing.template AND found.place = agreeing.place
            AND found.value = generated.value AND found.number > maker
    """)


def _name(opened: duckdb.DuckDBPyConnection) -> None:
    """Creates the table `named` with the inferred keys of each maker and the row of each key, and the table `agreeing`
    with the places where numbers are keys.

    Several places may contradict each other about the key of a maker. In this case, the place with the densest values
    is used. If several are equally dense, the one with the most values is used.
    """
    opened.execute("""
        CREATE TABLE ranked AS
        SELECT *, row_number() OVER (
            PARTITION BY maker_template ORDER BY width / makers, makers DESC, template, place
        ) AS rank FROM trusted
    """)
    opened.execute("""
        CREATE TABLE likeliest AS
        SELECT maker, maker_template, arg_min(value, rank) AS value, arg_min(is_number, rank) AS is_number
        FROM followed JOIN ranked USING (maker_template, template, place, is_number) GROUP BY 1, 2
    """)
    # The likeliest value of an INSERT of several rows may be the key of any row. The lowest value near it is the key of
    # the first row, if later statements contain the keys of all rows. Otherwise, no key of the INSERT is known.
    opened.execute("""
        CREATE TABLE of_rows AS
        WITH several AS (
            SELECT makers.*, likeliest.value::BIGINT AS near
            FROM makers JOIN likeliest ON likeliest.maker = makers.number WHERE rows > 1 AND is_number
        ), later AS (
            SELECT found.session, found.number, value::BIGINT AS value, maker_template
            FROM found JOIN ranked USING (template, place, is_number)
            WHERE is_number AND maker_template IN (SELECT maker_template FROM several)
        )
        SELECT several.number AS maker, several.maker_template, min(value) AS first, any_value(rows) AS rows
        FROM later ASOF JOIN several ON later.session = several.session
            AND later.maker_template = several.maker_template AND later.number > several.number
        WHERE abs(value - near) < rows
        GROUP BY 1, 2 HAVING count(DISTINCT value) = any_value(rows) AND max(value) - min(value) = any_value(rows) - 1
    """)
    opened.execute("""
        CREATE TABLE named AS
        SELECT maker, maker_template, value, 0 AS nth, 1 AS rows
        FROM likeliest WHERE maker IN (SELECT number FROM makers WHERE rows = 1)
        UNION ALL
        SELECT maker, maker_template, (first + nth)::VARCHAR AS value, nth, rows
        FROM (SELECT *, unnest(range(rows)) AS nth FROM of_rows)
    """)
    # Numbers are replaced only at trusted places that agree with the keys, because the same number can mean something
    # else. A UUID means the same everywhere.
    opened.execute(f"""
        CREATE TABLE agreeing AS
        SELECT maker_template, template, place FROM followed
        JOIN ranked USING (maker_template, template, place, is_number)
        LEFT JOIN named USING (maker, maker_template, value)
        WHERE is_number
        GROUP BY 1, 2, 3 HAVING count(nth) >= (1 - {_WRONG}) * count(*)
    """)


def _choose(opened: duckdb.DuckDBPyConnection) -> None:
    """Fills the tables `keys` and `replaced`."""
    results = [
        (template, result_column(template))
        for (template,) in file.asked(opened, "SELECT DISTINCT maker_template FROM named")
    ]
    opened.execute("CREATE TABLE results (maker_template VARCHAR, result INTEGER)")
    if results:
        opened.executemany("INSERT INTO results VALUES (?, ?)", results)
    # Several makers can return the same value, such as an INSERT and a later lastval(). In this case, the last one is
    # used.
    opened.execute("""
        INSERT INTO keys
        SELECT maker, (sum(rows) OVER (ORDER BY maker) - rows)::INTEGER, result, rows
        FROM (SELECT maker, any_value(maker_template) AS maker_template, any_value(rows) AS rows FROM named GROUP BY 1)
        JOIN results USING (maker_template)
    """)
    opened.execute("""
        CREATE TABLE uses AS
        SELECT found.number, found.place, found.bound, found.value, arg_max(keys.slot + named.nth, named.maker) AS slot
        FROM found
        JOIN named ON named.value = found.value AND named.maker < found.number
        JOIN keys ON keys.maker = named.maker
        WHERE NOT is_number OR (maker_template, template, place) IN (FROM agreeing)
        GROUP BY 1, 2, 3, 4
    """)
    opened.execute(f"""
        INSERT INTO replaced
        WITH placed AS (
            SELECT number, value, slot, place AS start FROM uses WHERE bound
            UNION ALL
            SELECT number, value, slot,
                coalesce(list_sum(list_transform(pieces[1:place - 1], lambda one: strlen(one))), 0)
                    + CASE WHEN starts_with(pieces[place], '''') THEN 1 ELSE 0 END
            FROM uses
            JOIN (
                SELECT number, regexp_extract_all(text, {file.quoted(_TOKENS)}) AS pieces
                FROM chosen WHERE prepared IS NULL AND number IN (SELECT number FROM uses WHERE NOT bound)
            ) USING (number)
            WHERE NOT bound
        )
        SELECT number, list(start::INTEGER ORDER BY start), list(strlen(value)::INTEGER ORDER BY start),
            list(slot ORDER BY start)
        FROM placed GROUP BY 1
    """)


def result_column(template: str) -> int:
    """Returns the number of the result column with the key: `id`, else the first name that ends in `id`, else 0."""
    found = _COLUMNS.search(template)
    names = [one.strip().strip(';" ').rpartition(".")[2].strip('"') for one in found[1].split(",")] if found else []
    endings = [name for name in names if name.endswith("id")]
    return names.index("id" if "id" in names else endings[0]) if endings else 0
