"""Searching what was measured: records, series and labs, by what the index knows of them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from html import escape

from ironbench.records.index import Listed
from ironbench.report.cell import count
from ironbench.report.charts.base import Table
from ironbench.report.numbers import moment, quantity
from ironbench.serve.page import link, option, select
from ironbench.serve.shelf import FIELDS, Holdings, Shelf
from ironbench.words import counted, grouped

ON_A_PAGE = 50
_LAST_PAGE = 10_000


@dataclass(frozen=True, slots=True)
class Query:
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
    def of(fields: Mapping[str, str]) -> Query:
        """From the fields of an address; what makes no sense there is left out."""
        return Query(
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


def search(shelf: Shelf, query: Query) -> Found:
    holdings = shelf.holdings()
    matching = query.matching(holdings)
    page = min(query.page, _last(len(matching)))
    first = (page - 1) * ON_A_PAGE
    return Found(len(matching), matching[first : first + ON_A_PAGE], holdings.choices, page)


def _last(rows: int) -> int:
    """Number of the last page."""
    return max(1, -(-rows // ON_A_PAGE))


def series_rows(shelf: Shelf, most: int) -> list[tuple[str, list[Listed]]]:
    """The newest series of runs, each with its rows, newest first."""
    return list(itertools.islice(shelf.holdings().series.items(), most))


def record_address(lab: str, id: str) -> str:
    return f"/lab/{lab}/record/{id}" if lab else f"/record/{id}"


def rows_table(rows: Iterable[tuple[str, Listed]], pick: bool = True) -> str:
    """Records, each with a tick for a comparison."""
    head = ["compare"] * pick + ["record", "label", "workload", "engine", "load", "status", "throughput", "started"]
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f'<table class="rows"><thead><tr>{cells}</tr></thead><tbody>'
        f"{''.join(_row(lab, row, pick) for lab, row in rows)}</tbody></table>"
    )


def _row(lab: str, row: Listed, pick: bool) -> str:
    name = f"{lab}/{row.id}" if lab else row.id
    tick = (
        f'<td data-head="compare"><input type="checkbox" name="pick" value="{escape(name)}" '
        f'aria-label="Compare {escape(row.id)}"></td>'
        if pick
        else ""
    )
    rate = quantity(row.throughput, "1/s") if row.throughput is not None else ""
    texts = (
        ("label", escape(row.label), ""),
        ("workload", escape(row.workload), ""),
        ("engine", escape(row.engine), ""),
        ("load", escape(row.cell), ""),
        ("status", f'<span class="state {escape(row.status)}">{escape(row.status)}</span>', ""),
        ("throughput", escape(rate), ' class="number"'),
        ("started", escape(moment(row.started_at)), ""),
    )
    rest = "".join(f'<td data-head="{head}"{kind}>{text}</td>' for head, text, kind in texts)
    return f'<tr>{tick}<th scope="row">{link(record_address(lab, row.id), row.id)}</th>{rest}</tr>'


def form(query: Query, found: Found, names: Mapping[str, str]) -> str:
    """`names`: key of a machine → its words."""
    selects = "".join(
        select(name, "any", "".join(option(one, query.wanted.get(name) == one, names.get(one, one)) for one in values))
        for name, values in found.choices.items()
    )
    dates = "".join(
        f'<label>{words}<input type="date" name="{name}" value="{escape(value)}"></label>'
        for name, words, value in (("since", "from", query.since), ("until", "to", query.until))
    )
    return (
        '<form class="inline" role="search" action="/archive"><label>label, record or load'
        f'<input type="search" name="q" value="{escape(query.text)}" maxlength="200"></label>{selects}{dates}'
        '<button class="main">Search</button><button formaction="/history">History of these</button></form>'
    )


def pages(query: Query, found: Found) -> str:
    last = _last(found.count)
    links = [link("/archive", words, **query.fields(number)) for words, number in steps(found.page, last)]
    where = f"{counted(found.count, 'record')}, page {grouped(found.page)} of {grouped(last)}"
    return f'<nav class="pages" aria-label="Pages of records"><span>{escape(where)}</span>{"".join(links)}</nav>'


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
