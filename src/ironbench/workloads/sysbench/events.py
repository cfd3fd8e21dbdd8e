"""Events of sysbench's OLTP tests: their statements, the order of the statements, and their random inputs. Statements
and their grouping are those in the log of a server on which sysbench 1.0.20 ran. All statements of a group, such as the
ten point selects, use the same table. The table is drawn at random for each group. A pgbench script cannot use a
variable as the name of a table, so the script contains every statement once for each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ironbench.errors import InputError, written
from ironbench.words import grouped
from ironbench.workloads import sql_files
from ironbench.workloads.base import Option

FOLDER = Path(__file__).parent
_RANGES = {
    "simple_ranges": "SELECT c FROM sbtestN WHERE id BETWEEN {low} AND {high}",
    "sum_ranges": "SELECT SUM(k) FROM sbtestN WHERE id BETWEEN {low} AND {high}",
    "order_ranges": "SELECT c FROM sbtestN WHERE id BETWEEN {low} AND {high} ORDER BY c",
    "distinct_ranges": "SELECT DISTINCT c FROM sbtestN WHERE id BETWEEN {low} AND {high} ORDER BY c",
}
_READS = ("point_selects", "range_selects", "range_size", *_RANGES)
_WRITES = ("index_updates", "non_index_updates", "delete_inserts")
TESTS: Mapping[str, tuple[str, ...]] = {
    "oltp_read_write": (*_READS, *_WRITES, "skip_trx"),
    "oltp_read_only": (*_READS, "skip_trx"),
    "oltp_write_only": (*_WRITES, "skip_trx"),
    "oltp_point_select": (),
    "oltp_update_index": (),
    "oltp_update_non_index": (),
    "oltp_insert": (),
    "oltp_delete": (),
    "select_random_points": ("random_points",),
    "select_random_ranges": ("number_of_ranges", "delta"),
}
"""Tests, with the options that each test uses. All tests also use the options for tables and random numbers."""
READS_ONLY = ("oltp_read_only", "oltp_point_select", "select_random_points", "select_random_ranges")
_SINGLE = {
    "oltp_point_select": {"point_selects": "1"},
    "oltp_update_index": {"index_updates": "1"},
    "oltp_update_non_index": {"non_index_updates": "1"},
}
"""Tests with a single statement. These tests are described by the options of `oltp_read_write` that result in the same
statement."""
MOST_STATEMENTS = 100_000
_C = "-".join(["#" * 11] * 10)
_PAD = "-".join(["#" * 11] * 5)


def _number(name: str, default: int, doc: str, lowest: int = 0, highest: int = 1000) -> Option:
    return Option(name, str(default), doc, lowest=lowest, highest=highest)


OPTIONS = (
    _number("point_selects", 10, "number of selects by id per event"),
    Option(
        "range_selects",
        "on",
        "on: events also read ranges of rows; off: events do not read ranges",
        choices=("on", "off"),
    ),
    _number("range_size", 100, "number of rows in each range", lowest=1, highest=1_000_000),
    _number("simple_ranges", 1, "number of selects of a range per event"),
    _number("sum_ranges", 1, "number of selects of a sum over a range per event"),
    _number("order_ranges", 1, "number of selects of a range with ORDER BY per event"),
    _number("distinct_ranges", 1, "number of selects of a range with DISTINCT per event"),
    _number("index_updates", 1, "number of updates of the indexed column k per event"),
    _number("non_index_updates", 1, "number of updates of the column c, which has no index, per event"),
    _number("delete_inserts", 1, "number of rows that an event deletes and inserts again"),
    _number("random_points", 10, "number of values in the IN list of select_random_points", lowest=1),
    _number("number_of_ranges", 10, "number of ranges in a query of select_random_ranges", lowest=1),
    _number("delta", 5, "size of the ranges in queries of select_random_ranges", lowest=0, highest=1_000_000),
    Option(
        "skip_trx",
        "off",
        "on: run the statements of an event without BEGIN and COMMIT; off: run each event as a transaction",
        choices=("on", "off"),
    ),
    Option(
        "rand_type",
        "special",
        "random distribution from which the rows are chosen; special: 75% of accesses go to 0.75% of the rows",
        choices=("special", "uniform", "zipfian", "pareto", "gaussian"),
    ),
    Option("rand_zipfian_exp", "0.8", "exponent of the distribution zipfian", lowest=0.01, highest=5, whole=False),
)


@dataclass(frozen=True, slots=True)
class Event:
    """An event: its script, and the inputs that are drawn before each execution."""

    script: str
    inputs: Mapping[str, Mapping[str, Any]]
    """Variables, with the description of how a value is drawn (`Drawn` in crates/ironbench-data/src/inputs.rs)."""
    reads: int
    """Number of SELECTs per event."""
    writes: int
    """Number of INSERTs, UPDATEs and DELETEs per event."""
    others: int
    """Number of BEGINs and COMMITs per event. sysbench also counts them as queries."""

    @property
    def queries(self) -> int:
        """Number of statements per event."""
        return self.reads + self.writes + self.others


@dataclass(slots=True)
class _Builder:
    options: Mapping[str, str]
    lines: list[str] = field(default_factory=list)
    inputs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    """The statements of one event, with the placeholder for the table."""

    def drawn(self, name: str, value: Mapping[str, Any]) -> str:
        """Adds an input and returns its variable."""
        variable = f"{name}{1 + sum(one.rstrip('0123456789') == name for one in self.inputs)}"
        self.inputs[variable] = value
        return f":{variable}"

    def row(self, name: str = "id") -> str:
        kind: Any = self.options["rand_type"]
        if kind == "zipfian":
            kind = {kind: {"exponent": float(self.options["rand_zipfian_exp"])}}
        number = {"distribution": kind, "low": 1, "high": int(self.options["table_size"])}
        return self.drawn(name, {"number": number})

    def text(self, name: str, pattern: str) -> str:
        return self.drawn(name, {"digits": pattern})

    def last(self, first: str, size: int) -> str:
        """Adds a variable for the last number of a range, and returns the variable. The range has `size` numbers and
        starts at the variable `first`."""
        variable = f"{first.removeprefix(':')}_last"
        self.lines.append(f"\\set {variable} {first} + {size - 1}")
        return f":{variable}"

    def alone(self, statement: str) -> None:
        self.lines.append(f"{statement};")
        self.statements.append(statement)

    def group(self, statements: Sequence[str]) -> None:
        """Adds statements on the table `sbtestN`, which is drawn for this group."""
        if not statements:
            return
        self.statements += statements
        most = int(self.options["tables"])
        table = ""
        if most > 1:
            table = self.drawn("table", {"number": {"distribution": "uniform", "low": 1, "high": most}})
        self.lines += _each_table(table, 1, most, statements)


def _each_table(table: str, low: int, high: int, statements: Sequence[str]) -> Iterator[str]:
    """Yields script lines that execute the statements on the table with number `table`. The conditions form a binary
    tree, so that few of them are evaluated."""
    if low == high:
        yield from (f"{statement.replace('sbtestN', f'sbtest{low}')};" for statement in statements)
        return
    middle = (low + high) // 2
    yield f"\\if {table} <= {middle}"
    yield from _each_table(table, low, middle, statements)
    yield "\\else"
    yield from _each_table(table, middle + 1, high, statements)
    yield "\\endif"


def event(engine: str, options: Mapping[str, str]) -> Event:
    """Returns the event of the chosen test."""
    test, builder = options["test"], _Builder(options)
    if test == "oltp_insert":
        builder.row("k"), builder.text("c", _C), builder.text("pad", _PAD)
        builder.group(sql_files.statements(FOLDER, "insert", engine))
    elif test == "oltp_delete":
        builder.group([f"DELETE FROM sbtestN WHERE id={builder.row()}"])
    elif test == "select_random_points":
        points = ", ".join(builder.row("k") for _ in range(int(options["random_points"])))
        builder.alone(f"SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({points})")
    elif test == "select_random_ranges":
        size = int(options["delta"]) + 1
        lows = [builder.row("k") for _ in range(int(options["number_of_ranges"]))]
        ranges = " OR ".join(f"k BETWEEN {low} AND {builder.last(low, size)}" for low in lows)
        builder.alone(f"SELECT count(k) FROM sbtest1 WHERE {ranges}")
    else:
        _read_write(engine, builder, test)
    kinds = [statement.split()[0].upper() for statement in builder.statements]
    reads, writes = kinds.count("SELECT"), sum(kind in ("INSERT", "UPDATE", "DELETE") for kind in kinds)
    return Event("\n".join([*builder.lines, ""]), builder.inputs, reads, writes, len(kinds) - reads - writes)


def _read_write(engine: str, builder: _Builder, test: str) -> None:
    counts = _counts(builder.options)
    in_transaction = test not in _SINGLE and builder.options["skip_trx"] == "off"
    if in_transaction:
        (begin,) = ("BEGIN",) if test in READS_ONLY else sql_files.statements(FOLDER, "begin", engine)
        builder.alone(begin)
    builder.group([f"SELECT c FROM sbtestN WHERE id={builder.row()}" for _ in range(counts["point_selects"])])
    for name, text in _RANGES.items():
        lows = [builder.row() for _ in range(counts[name])]
        size = int(builder.options["range_size"])
        builder.group([text.format(low=low, high=builder.last(low, size)) for low in lows])
    builder.group([f"UPDATE sbtestN SET k=k+1 WHERE id={builder.row()}" for _ in range(counts["index_updates"])])
    updates = [(builder.text("c", _C), builder.row()) for _ in range(counts["non_index_updates"])]
    builder.group([f"UPDATE sbtestN SET c={c} WHERE id={row}" for c, row in updates])
    replaced: list[str] = []
    for _ in range(counts["delete_inserts"]):
        row, k, c, pad = builder.row(), builder.row("k"), builder.text("c", _C), builder.text("pad", _PAD)
        replaced.append(f"DELETE FROM sbtestN WHERE id={row}")
        replaced.append(f"INSERT INTO sbtestN (id, k, c, pad) VALUES ({row}, {k}, {c}, {pad})")
    builder.group(replaced)
    if in_transaction:
        builder.alone("COMMIT")


def _counts(options: Mapping[str, str]) -> dict[str, int]:
    """Returns how many statements of each kind an event has. The DELETE and INSERT that replace a row count as one."""
    test = options["test"]
    given = _SINGLE.get(test, {name: options[name] for name in TESTS[test]})
    names = ("point_selects", *_RANGES, *_WRITES)
    counts = {name: int(given.get(name, "0")) for name in names}
    if options["range_selects"] == "off":
        counts |= dict.fromkeys(_RANGES, 0)
    return counts


def increments(options: Mapping[str, str]) -> int:
    """Returns the number of rows in which an event increases `k` by one."""
    return _counts(options)["index_updates"]


def replaces(options: Mapping[str, str]) -> bool:
    """Returns whether events delete rows and insert them again."""
    return _counts(options)["delete_inserts"] > 0


def uses(options: Mapping[str, str], name: str) -> bool:
    """Returns whether the chosen test depends on the option `name`."""
    if name in ("test", "tables", "table_size", "rand_type"):
        return True
    if name == "rand_zipfian_exp":
        return options["rand_type"] == "zipfian"
    return name in TESTS[options["test"]]


def drawn(inputs: Mapping[str, Mapping[str, Any]], *, quoted: bool) -> Mapping[str, Any]:
    """Returns the plan of the inputs. `quoted`: whether texts need quotes, because they are inserted into the SQL
    text."""

    def value(one: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"digits": f"'{one['digits']}'"} if quoted and "digits" in one else one

    draws = [{"variable": name, "value": value(one)} for name, one in inputs.items()]
    return {"kind": "inputs", "draws": draws}


def require_possible(options: Mapping[str, str]) -> None:
    """Raises InputError if events would have no statement, or if the script would have too many."""
    test = options["test"]
    if "skip_trx" in TESTS[test]:
        each, tables = sum(_counts(options).values()), int(options["tables"])
        if each == 0:
            cause = "has no statement with these options"
            raise InputError(
                written("workload.with", f"test={test}"),
                cause,
                "set the number of at least one kind of statement to 1 or more",
            )
        if each * tables > MOST_STATEMENTS:
            raise InputError(
                written("workload.with", f"tables={tables}"),
                f"the script would have {grouped(each * tables)} statements, with {grouped(each)} per event and table; "
                f"at most {grouped(MOST_STATEMENTS)} are possible",
                f"use at most {MOST_STATEMENTS // each} tables, or fewer statements per event",
            )
