"""Searching what was measured: records, series and labs, by what the index knows of them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from ironbench.records.index import Listed
from ironbench.report.cell import count
from ironbench.report.charts.base import Table
from ironbench.report.numbers import moment, quantity
from ironbench.serve.shelf import FIELDS, Holdings, Shelf

ON_A_PAGE = 50
_LAST_PAGE = 10_000


@dataclass(frozen=True, slots=True)
class ArchiveQuery:
    """What is looked for; empty fields allow anything."""

    text: str = ""
    """Part of a label, a record's id, a cell or the name of a lab."""
    wanted: Mapping[str, str] = field(default_factory=dict)
    """Field of the index → its value."""
    since: str = ""
    until: str = ""
    """Days, `2026-11-25`, both included."""
    page: int = 1

    @staticmethod
    def of(fields: Mapping[str, str]) -> ArchiveQuery:
        """From the fields of an address; what makes no sense there is left out."""
        return ArchiveQuery(
            fields.get("q", "").strip()[:200],
            {name: value for name in FIELDS if (value := fields.get(name, ""))},
            _day(fields.get("since", "")),
            _day(fields.get("until", "")),
            page_of(fields),
        )

    def matching(self, holdings: Holdings) -> list[tuple[str, Listed]]:
        """Newest first. Each test is a pass of its own: a hundred thousand rows are looked at."""
        found = holdings.rows
        if self.text:
            text = self.text.lower()
            found = [one for one, words in zip(found, holdings.texts, strict=True) if text in words]
        for name, value in self.wanted.items():
            field_of = operator.attrgetter(name)
            found = [one for one in found if field_of(one[1]) == value]
        if self.since:
            found = [one for one in found if one[1].started_at >= self.since]
        if self.until:
            found = [one for one in found if one[1].started_at[:10] <= self.until]
        return found

    def fields(self, page: int) -> dict[str, str]:
        shown = {"q": self.text, **self.wanted, "since": self.since, "until": self.until}
        return shown | ({"page": str(page)} if page > 1 else {})


@dataclass(frozen=True, slots=True)
class Found:
    """A page of what matches, newest first."""

    count: int
    rows: list[tuple[str, Listed]]
    """Each with the name of its lab, or empty."""
    choices: Mapping[str, list[str]]
    """Field → the values that occur among all records."""
    page: int
    """The one that was asked for, or the last."""


def page_of(fields: Mapping[str, str]) -> int:
    """Number of a page in the fields of an address; what is none is the first."""
    number = fields.get("page", "1")
    return min(max(int(number), 1), _LAST_PAGE) if number.isascii() and number.isdigit() and len(number) < 9 else 1


def _day(text: str) -> str:
    """`2026-11-25`; empty where it is none."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return ""


def search(shelf: Shelf, query: ArchiveQuery) -> Found:
    holdings = shelf.holdings()
    matching = query.matching(holdings)
    page = min(query.page, last_page(len(matching)))
    first = (page - 1) * ON_A_PAGE
    return Found(len(matching), matching[first : first + ON_A_PAGE], holdings.choices, page)


def last_page(rows: int) -> int:
    """Number of the last page."""
    return max(1, -(-rows // ON_A_PAGE))


def series_rows(shelf: Shelf, most: int) -> list[tuple[str, list[Listed]]]:
    """The newest series of runs, each with its rows, newest first."""
    return list(itertools.islice(shelf.holdings().series.items(), most))


def record_address(lab: str, id: str) -> str:
    return f"/lab/{lab}/record/{id}" if lab else f"/record/{id}"


def shown_rows(rows: Iterable[tuple[str, Listed]]) -> list[dict[str, str]]:
    """Records as a page lists them."""
    return [
        {
            "pick": f"{lab}/{row.id}" if lab else row.id,
            "address": record_address(lab, row.id),
            "id": row.id,
            "label": row.label,
            "workload": row.workload,
            "engine": row.engine,
            "cell": row.cell,
            "status": row.status,
            "throughput": quantity(row.throughput, "1/s") if row.throughput is not None else "",
            "started": moment(row.started_at),
        }
        for lab, row in rows
    ]


def steps(page: int, last: int) -> list[tuple[str, int]]:
    """What the links to other pages say, and where they lead."""
    steps = [("newer", page - 1), ("older", page + 1)]
    return [(words, number) for words, number in steps if 1 <= number <= last]


def labels(shelf: Shelf) -> Table:
    """Labels of runs with their series and trials, the newest first."""
    rows = tuple(
        (label, workload, count(len({row.series for row in of_work})), count(len(of_work)))
        for label, found in itertools.islice(shelf.holdings().labels.items(), ON_A_PAGE)
        for workload in dict.fromkeys(row.workload for row in found)
        for of_work in [[row for row in found if row.workload == workload]]
    )
    return Table(("label", "workload", "series", "trials"), rows)
