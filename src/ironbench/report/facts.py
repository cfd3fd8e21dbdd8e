"""Formats recorded facts for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironbench import units
from ironbench.report.cell import Content, Row, TableCell
from ironbench.report.charts.base import Table
from ironbench.study.differences import Difference, is_address
from ironbench.words import cut, upper_first

_WORDS = {
    "threads of one Python process: a limit earlier than the core's own wires": (
        "threads of one Python process, which saturate earlier than the clients that ironbench implements itself"
    ),
}
"""Maps recorded values to the words that reports show today. Records still contain the original words, so that old and
new records are equal in comparisons."""
CHANGED = "changed."
"""Prefix of facts that name the source of a setting's value, such as a configuration file."""
_KINDS = ("system", "load", "tag", "machine", "client", "engine", "software")


def configuration(shared: Mapping[str, str]) -> list[tuple[str, Table]]:
    """Returns a table for each kind of fact, such as `machine`, with the facts that all systems share."""
    tables = []
    for kind in _KINDS:
        rows = [
            (fact_name(name.partition(".")[2]), fact(name, value))
            for name, value in shared.items()
            if name.partition(".")[0] == kind
        ]
        if rows:
            tables.append((upper_first(kind), Table(("fact", "value"), tuple(rows), words=True)))
    return tables


def difference_rows(rows: Sequence[Difference]) -> tuple[Row, ...]:
    """Returns a row for each fact, with its value in every system."""
    return tuple((f"{row.group}: {fact_name(row.name)}", *values(row)) for row in rows)


_ADDRESS = 40
"""Addresses are cut to this number of characters."""


def values(row: Difference) -> list[Content]:
    """Returns the values of a fact, formatted for people. An address is shortened to its host and database. If these
    are equal in all addresses, only the parameters are shown."""
    if not is_address(row):
        return [fact(row.name, value) for value in row.values]
    places = [_place(value) for value in row.values]
    if len(set(places)) == 1:  # the addresses differ only in their parameters
        places = [value.partition("?")[2] or NO_PARAMETERS for value in row.values]
    return [cut(place, _ADDRESS) for place in places]


NO_PARAMETERS = "no parameters"


def _place(address: str) -> str:
    """Reduces an address to host and database: `postgresql://bench@db.example:5432/shop?sslmode=require` →
    `db.example:5432/shop`."""
    return address.partition("://")[2].partition("?")[0].rpartition("@")[2] or address


def fact_name(name: str) -> str:
    """Returns the name of a fact without its unit suffix, because the value shows the unit."""
    if name.startswith(CHANGED):
        return f"source of {name.removeprefix(CHANGED)}"
    return name.removesuffix("_bytes").removesuffix("_hz")


def fact(name: str, value: str) -> Content:
    """Formats the value of a fact. Sizes are shown in powers of 1024, as is usual for memory and databases. Most other
    values are shown as recorded."""
    if name.endswith("_bytes") and value.isdigit():
        return TableCell(float(value), "memory")
    if name.endswith("_hz") and value.isdigit():
        return TableCell(float(value), "Hz")
    return _WORDS.get(value) or units.device(value)
