"""The archive page: searches the index for records, and lists labs and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from starlette.responses import Response

from ironbench.errors import IronbenchError
from ironbench.model.purpose import Purpose
from ironbench.model.record import Status
from ironbench.records.index import Index, Listed
from ironbench.report.cell import count
from ironbench.report.charts.base import Table
from ironbench.report.numbers import moment, quantity
from ironbench.serve.answers import AnswerCache
from ironbench.serve.page import page
from ironbench.serve.results import FIELDS, NEWEST, Results
from ironbench.words import counted, grouped

ON_A_PAGE = 50
_LAST_PAGE = 10_000
_NEWEST_LABS = 100
"""Maximum number of labs that are listed with their questions. Older labs are listed only by name."""


@dataclass(frozen=True, slots=True)
class ArchiveQuery:
    """A search for records. Empty fields match everything."""

    text: str = ""
    """Part of a label, of a record id, of a configuration's name or of a lab's name."""
    wanted: Mapping[str, str] = field(default_factory=dict)
    """For each column of the index on which the search filters, the required value."""
    since: str = ""
    until: str = ""
    """`since` and `until` are the first and the last day of the search, such as `2026-11-25`."""
    page: int = 1

    @staticmethod
    def of(fields: Mapping[str, str]) -> ArchiveQuery:
        """Reads a search from the query of a URL. Invalid values are ignored."""
        return ArchiveQuery(
            fields.get("q", "").strip()[:200],
            {name: value for name in FIELDS if (value := fields.get(name, ""))},
            _day(fields.get("since", "")),
            _day(fields.get("until", "")),
            page_of(fields),
        )

    def condition(self) -> tuple[str, list[str]]:
        """Returns the SQL condition for `Index.rows` and its parameters."""
        tests = {
            "instr(searched, ?)": self.text.lower(),
            **{f"{name} = ?": value for name, value in self.wanted.items()},
            "started_at >= ?": self.since,
            "substr(started_at, 1, 10) <= ?": self.until,
        }
        given = {test: value for test, value in tests.items() if value}
        return " and ".join(given) or "true", list(given.values())

    def fields(self, page: int) -> dict[str, str]:
        shown = {"q": self.text, **self.wanted, "since": self.since, "until": self.until}
        return shown | ({"page": str(page)} if page > 1 else {})


@dataclass(frozen=True, slots=True)
class Found:
    """A page of search results, the newest first."""

    count: int
    rows: list[tuple[str, Listed]]
    """Pairs of the lab's name (empty for runs) and the record's row."""
    choices: Mapping[str, list[str]]
    """Values that occur in any record, by column."""
    page: int
    """Number of the requested page, or of the last page if there is no such page."""


def page_of(fields: Mapping[str, str]) -> int:
    """Reads a page number from the query of a URL. Returns 1 if the number is invalid."""
    number = fields.get("page", "1")
    return min(max(int(number), 1), _LAST_PAGE) if number.isascii() and number.isdigit() and len(number) < 9 else 1


def _day(text: str) -> str:
    """Returns a date in the form `2026-11-25`. Returns "" if it is invalid."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return ""


def search(results: Results, query: ArchiveQuery) -> Found:
    index, (where, values) = results.index(), query.condition()
    total = index.count(where, *values)
    page = min(query.page, last_page(total))
    rows = index.rows(f"{where} {NEWEST} limit ? offset ?", *values, ON_A_PAGE, (page - 1) * ON_A_PAGE)
    return Found(total, rows, choices(index), page)


def choices(index: Index) -> dict[str, list[str]]:
    """Returns the values that occur in each of the columns `FIELDS`."""
    found = index.query(f"select distinct {', '.join(FIELDS)} from record")
    return {name: sorted({row[place] for row in found} - {""}) for place, name in enumerate(FIELDS)}


def last_page(rows: int) -> int:
    """Returns the number of the last page."""
    return max(1, -(-rows // ON_A_PAGE))


def record_address(lab: str, id: str) -> str:
    return f"/lab/{lab}/record/{id}" if lab else f"/record/{id}"


def shown_rows(rows: Iterable[tuple[str, Listed]]) -> list[dict[str, str]]:
    """Returns the fields of rows for the template of a list of records."""
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
            "status_word": status_word(row.status),
            "throughput": quantity(row.throughput, "1/s") if row.throughput is not None else "",
            "started": moment(row.started_at),
        }
        for lab, row in rows
    ]


def steps(page: int, last: int) -> list[tuple[str, int]]:
    """Returns the text and the page number of the links to the previous and the next page."""
    steps = [("newer", page - 1), ("older", page + 1)]
    return [(words, number) for words, number in steps if 1 <= number <= last]


def labels(results: Results) -> Table:
    """Returns a table of the most recent labels of runs, with the workload and the numbers of series and of trials for
    each label."""
    found = results.index().query(
        "select label, workload, count(distinct series), count(*) from record where lab = ''"
        " group by label, workload order by max(started_at) desc"
    )
    shown = list(dict.fromkeys(label for label, *_ in found))[:ON_A_PAGE]
    rows = [
        (label, workload, count(series), count(trials))
        for label in shown
        for of, workload, series, trials in found
        if of == label
    ]
    return Table(("label", "workload", "series", "trials"), tuple(rows))


def archive_page(results: Results, query: ArchiveQuery, view: str, answers: AnswerCache) -> Response:
    if view == "labs":
        names = results.labs()[::-1]
        sql = "select lab, count(*), min(started_at) from record where purpose = ? group by lab"
        trials = {lab: (count, began) for lab, count, began in results.index().query(sql, Purpose.LAB)}
        newest = [(name, *_lab(results, name, *trials.get(name, (0, "")))) for name in names[:_NEWEST_LABS]]
        labs = [*newest, *((name, name, "") for name in names[_NEWEST_LABS:])]
        shown = [(*lab, answers.cached(results, lab[0])) for lab in labs]
        return page("archive.html", "Labs", at="/archive", view=view, labs=shown)
    if view == "labels":
        return page("archive.html", "Labels", at="/archive", view=view, labels=labels(results).texts)
    found = search(results, query)
    last = last_page(found.count)
    machines = {key: _machine(results, key) for key in found.choices["machine"]}
    return page(
        "archive.html",
        "Archive",
        at="/archive",
        view="",
        any_records=bool(results.index().count("true")),
        query=query,
        choices={
            field: [(one, machines.get(one) or _field_text(field, one)) for one in known]
            for field, known in found.choices.items()
        },
        rows=shown_rows(found.rows),
        where=f"{counted(found.count, 'record')}, page {grouped(found.page)} of {grouped(last)}",
        steps=[(words, query.fields(number)) for words, number in steps(found.page, last)],
    )


def _lab(results: Results, name: str, trials: int, began: str) -> tuple[str, str]:
    """Returns the question of a lab, and a line with its name, number of trials and start."""
    try:
        question = results.lab(name).frozen().lab.question
    except IronbenchError as error:
        question = f"cannot be read: {error.cause}"
    when = f", {moment(began)}" if began else ""
    return question, f"{name}: {counted(trials, 'trial')}{when}"


def status_word(status: str) -> str:
    """Returns the name of a record's status for a page. An unknown status, written by a newer version, is returned
    unchanged."""
    return Status(status).word if status in set(Status) else status


def _field_text(field: str, value: str) -> str:
    return status_word(value) if field == "status" else value


def _machine(results: Results, key: str) -> str:
    cpu = results.runs.machine(key).get("cpu")
    model = cpu.get("model") if isinstance(cpu, dict) else None
    return f"{model} ({key[:6]})" if model else key[:12]
