"""Time that clients spend on new connections. The section exists only for loads in which clients open new connections
during the trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbench import units
from ironbench.model.record import Record
from ironbench.report.cell import Row, centre, spread
from ironbench.report.charts.base import Table
from ironbench.report.page import Section
from ironbench.report.wording.terms import label
from ironbench.study.study import Study
from ironbench.study.summarise import summarise
from ironbench.words import counted

PLACE = 1230
_LEAD = (
    "The time per connection is the time from the end of a transaction until the client has its new connection. "
    "In a closed loop, response times do not include this time, during which the client does no other work."
)
_HEAD = ("", "new connections", "range", "time per connection", "range", "% of the clients' time", "range")


def sections(study: Study) -> Iterator[Section]:
    rows = tuple(row for name, records in _groups(study) for row in _row(name, records))
    tables = (("", Table(_HEAD, rows)),) if rows else ()
    yield Section("connections", "New connections", _LEAD if rows else "", tables=tables, printed_at_end=True)


def _groups(study: Study) -> Iterator[tuple[str, Sequence[Record]]]:
    """Yields pairs of a name and comparable trials. A lab has a pair for each configuration, and runs have a pair for
    each system and load."""
    for cell in study.cells:
        yield label(cell.configuration), cell.usable
    for part in study.parts:
        usable = [record for record in part.subject.records if record.status.comparable]
        for load in dict.fromkeys(map(_load, usable)):
            yield f"{part.name}, {load}", [record for record in usable if _load(record) == load]


def _load(record: Record) -> str:
    """Describes the load, for example as `8 clients` or `8 clients at 500/s`."""
    load = record.cell.load
    clients = counted(load.clients, "client")
    return clients if load.rate is None else f"{clients} at {units.rate(load.rate)}"


def _row(name: str, records: Sequence[Record]) -> Iterator[Row]:
    trials = [record for record in records if record.metrics.get("reconnects")]
    rates = summarise([record.metrics["reconnects"] / record.elapsed_s for record in trials])
    means = summarise([record.metrics["reconnect_mean_s"] for record in trials])
    shares = summarise([_share(record) for record in trials])
    if rates and means and shares:
        each = ((rates, "1/s"), (means, "s"), (shares, "share"))
        yield name, *(cell for one, unit in each for cell in (centre(one, unit), spread(one, unit)))


def _share(record: Record) -> float:
    """Returns the fraction of the clients' time during which they opened new connections."""
    took_s = record.metrics["reconnects"] * record.metrics["reconnect_mean_s"]
    return took_s / (record.cell.load.clients * record.elapsed_s)
