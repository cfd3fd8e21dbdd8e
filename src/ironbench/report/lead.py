"""`lead A B`: how the machines differ, the peaks of every work side by side, and curves against clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from ironbench.model.described import LEADING
from ironbench.model.record import Record
from ironbench.report import wording
from ironbench.report.cell import ABSENT, CONFIDENCE, EMPTY, UNKNOWN, Missing, Row, TableCell, count
from ironbench.report.charts import lead as charts
from ironbench.report.charts.base import Depth, Table
from ironbench.report.charts.lead import words_of
from ironbench.report.facts import difference_rows
from ironbench.report.numbers import NOT_KNOWN, failed_note, number, unit_of
from ironbench.report.page import Page
from ironbench.report.section import Answer, AnswerPoint, Section, with_rows
from ironbench.study.compare import CellComparison, ComparedMetric, MeanRatio
from ironbench.study.differences import telling
from ironbench.study.lead import Leads, WorkLead, outcome, trials_of
from ironbench.study.rate import Rate
from ironbench.study.subjects import counted_in, failed_percent, failed_share
from ironbench.words import counted

_AT_PEAK = dict.fromkeys(LEADING, " at the peak")
_IN_TURNS = "Both were measured in turns, block by block; a lead holds for them as they were set up."
_NOT_IN_TURNS = (
    "The two were not measured in turns: a lead holds for these machines as they were set up, differences named below "
    "included."
)
_VALUES = (
    "Values are geometric means: of the trials, or of the runs' means where both sides have several runs. A ratio is "
    "that of the two, with Welch's interval. `ironbench compare` takes medians, so its ratio may differ."
)
_OF_ROWS = "A row is of all trials with that many clients; the peak is of trials that did not choose it."
_SINGLE = "A side with a single trial has no spread, and a ratio with it no interval: it may be chance."
_ONE_RUN = (
    "A side has one run, so there is no verdict: the interval is that of its trials and leaves out how much runs vary. "
    "Repeat the run on both sides, three times or more."
)


def page(leads: Leads) -> Page:
    """How the machines differ, the peaks, then the ratio at each number of clients. Only HTML and pictures draw charts:
    the tables have the same figures."""
    drawn = [chart and replace(chart, depth=Depth.PAGE) for chart in (charts.peaks(leads), charts.by_clients(leads))]
    of_peaks, of_clients = ((chart,) if chart else () for chart in drawn)
    main = telling(leads.differences)[0]
    differences = Table(("", leads.a, leads.b), difference_rows(main), words=True)
    alike = () if main else ("The two do not differ in anything that is known of them.",)
    fair = _IN_TURNS if leads.in_turns else _NOT_IN_TURNS
    tables = tuple((work.work, by_clients(leads, work)) for work in leads.works if work.by_clients)
    of_rows = tuple(dict.fromkeys(text for work in leads.works if (text := _of_rows(work))))
    first, *rest = sentences(leads)
    return Page(
        title=f"{leads.b} compared with {leads.a}",
        lead="",
        answer=Answer(AnswerPoint(first), tuple(map(AnswerPoint, rest))),
        sections=(
            Section("differences", "What differs", sentences=(fair, *alike), tables=with_rows(differences)),
            Section(
                "lead",
                "Peak against peak",
                charts=of_peaks,
                tables=with_rows(peaks(leads)),
                sentences=tuple(filter(None, (_values(leads),))),
            ),
            Section("clients", "At each number of clients", charts=of_clients, tables=tables, sentences=of_rows),
        ),
        cautions=(*wording.texts(leads.cautions), *wording.texts(leads.apart)),
        derived=" ".join(leads.derived),
        fields=partial(_fields, leads),
    )


def _fields(leads: Leads) -> dict[str, Any]:
    works = [
        {
            "work": work.work,
            "peaks": None if work.peaks is None else _peak_fields(leads, work, work.peaks),
            "by_clients": [
                {"clients": clients, **_ratio_fields(leads, row, means)}
                for clients, compared in work.by_clients
                for row, means in _with_means([compared])
            ],
        }
        for work in leads.works
    ]
    return {
        "schema": 1,
        "baseline": leads.a,
        "system": leads.b,
        "cores": leads.cores,
        "frequency_ratio": leads.hertz_ratio,
        "frequency_kind": leads.hertz_kind,
        "works": works,
        "apart": wording.texts(leads.apart),
        "cautions": wording.texts(leads.cautions),
        "derived": leads.derived,
        "differences": [msgspec.to_builtins(row) for row in leads.differences],
    }


def _peak_fields(leads: Leads, work: WorkLead, peaks: CellComparison) -> dict[str, Any]:
    known = list(_with_means(peaks.rows))
    return {
        "clients": work.clients,
        "confirmed": work.confirmed,
        "values": {row.metric: means.centres for row, means in known},
        "rates": [{"asked": one.rate, "kept": one.kept, "trials": len(one.trials)} for one in work.rates or ()],
        "leads": {row.metric: _ratio_fields(leads, row, means) for row, means in known},
    }


def _ratio_fields(leads: Leads, row: ComparedMetric, means: MeanRatio) -> dict[str, Any]:
    """Without ends where there is no interval."""
    return {
        "ratio": means.ratio,
        "low": means.low if means.known else None,
        "high": means.high if means.known else None,
        "margin": leads.margin,
        "trials": means.trials,
        "centres": means.centres,
        "higher_is_better": row.better == "higher",
        "single_run": means.single_run,
        "words": _outcome(leads, row, means),
    }


def _with_means(rows: Iterable[ComparedMetric]) -> Iterator[tuple[ComparedMetric, MeanRatio]]:
    return ((row, row.means) for row in rows if row.means)


def _values(leads: Leads) -> str:
    every = [means for work in leads.works if work.peaks for _, means in _with_means(work.peaks.rows)]
    notes = [_VALUES] if any(one.known for one in every) else []
    notes += [_SINGLE] if any(not one.known for one in every) else []
    notes += [_ONE_RUN] if any(one.single_run and one.known for one in every) else []
    return " ".join(notes)


def _of_rows(work: WorkLead) -> str:
    """Why the ratio of a row may differ from that of the peak."""
    return _OF_ROWS if work.peaks and work.confirmed and len(work.by_clients) > 1 else ""


def sentences(leads: Leads) -> list[str]:
    """What the hardware predicts, and each work's peak in words."""
    lines = [text for text in (_hardware(leads),) if text]
    for work in leads.works:
        if work.peaks is None:
            lines.append(f"{work.work}: one of them has no usable trial.")
            continue
        parts = [
            f"{_title_of(row.metric, work)} × {number(means.ratio)} ({_outcome(leads, row, means)})"
            for row, means in _with_means(work.peaks.rows)
        ]
        parts += [
            f"{failed_percent(lost)} of the {counted_in(side.main.trials)[1]} of {side.name} failed"
            for side in work.curves
            if side.main and (lost := failed_share(side.main.trials))
        ]
        if work.rates:
            parts.insert(0, _rate_outcomes(leads, work.rates))
        chosen = not work.confirmed and any(len(curve.points) > 1 for curve in work.curves)
        fresh = "" if not chosen else " (on the trials that chose the peaks: not confirmed)"
        lines.append(f"{work.work}: {'; '.join(parts)}{fresh}.")
    return lines


def _outcome(leads: Leads, row: ComparedMetric, means: MeanRatio) -> str:
    return wording.text(outcome(means, leads.margin, row.better))


def _rate_outcomes(leads: Leads, rates: Sequence[Rate]) -> str:
    """`both kept the rate`, or what came of it on each side."""
    if all(one.is_kept for one in rates):
        return "both kept the rate"
    sides = zip((leads.a, leads.b), rates, strict=True)
    outcomes = " and ".join(f"{name} {wording.text(one.outcome)}" for name, one in sides)
    return f"the rate: {outcomes}; response times are then not compared"


def _title_of(metric: str, work: WorkLead) -> str:
    place = " at the rate" if work.rates else "" if work.alone else _AT_PEAK.get(metric, "")
    return f"{words_of(metric)}{place}"


def peaks(leads: Leads) -> Table:
    """Values of both, and the ratio with A as 1, as experiment F7 shows them."""
    rows: list[Row] = []
    for work in leads.works:
        of_a, of_b = work.clients
        at = f"{of_a} and {of_b} clients" if of_a != of_b else f"{counted(of_a, 'client')} each"
        trials = [side.main.trials if side.main else () for side in work.curves]
        for row, means in _with_means(work.peaks.rows if work.peaks else ()):
            name = f"{work.work}, {_title_of(row.metric, work)}"
            rows.append((name, *_both(row.metric, means, trials), _ratio(means.ratio), _interval(means), at))
    if leads.clock or leads.hertz_ratio is None:
        clock = f"{leads.hertz_kind} clock frequency".strip()
        rows.append((clock, EMPTY, EMPTY, _ratio(leads.clock), EMPTY, EMPTY))
    if leads.cores_differ:
        cores = [count(known) if known else UNKNOWN for known in leads.cores]
        a_cores, b_cores = leads.cores
        rows.append(("cores", *cores, _ratio(b_cores / a_cores if a_cores and b_cores else None), EMPTY, EMPTY))
    return Table(("", leads.a, leads.b, f"{leads.b} / {leads.a}", "95 % interval", "at"), tuple(rows), numbers=True)


def by_clients(leads: Leads, work: WorkLead) -> Table:
    """Throughput of both at each number of clients (or threads), and its ratio."""
    rows: list[Row] = []
    for clients, compared in work.by_clients:
        trials = [trials_of(side, clients) for side in work.curves]
        for row, means in _with_means([compared]):
            both, words = _both(row.metric, means, trials), _outcome(leads, row, means)
            rows.append((count(clients), *both, _ratio(means.ratio), _interval(means), words))
    head = ("clients", leads.a, leads.b, f"{leads.b} / {leads.a}", "95 % interval", f"{leads.b} …")
    return Table(head, tuple(rows), numbers=True)


def _hardware(leads: Leads) -> str:
    """In what the two differ; empty where in neither cores nor clock frequency."""
    known = [str(count) if count else NOT_KNOWN for count in leads.cores]
    has = []
    if leads.clock:
        has.append(f"the {leads.hertz_kind} clock frequency × {number(leads.clock)}")
    if leads.cores_differ:
        has.append(f"{known[1]} {'core' if leads.cores[1] == 1 else 'cores'} against {known[0]}")
    texts = [f"Compared with {leads.a}, {leads.b} has {', and '.join(has)}."] if has else []
    texts += [] if leads.hertz_ratio else ["Their clock frequencies cannot be compared."]
    return " ".join(texts)


def _both(metric: str, means: MeanRatio, sides: Sequence[Sequence[Record]]) -> tuple[TableCell, ...]:
    """The values of both; a rate with its failures."""
    return tuple(
        TableCell(value, unit_of(metric), note=failed_note(trials) if metric == "throughput" else "")
        for value, trials in zip(means.centres, sides, strict=True)
    )


def _ratio(value: float | None) -> TableCell | Missing:
    return TableCell(value, "times", bare=True) if value else UNKNOWN


def _interval(one: MeanRatio) -> TableCell | Missing:
    return TableCell(None, "times", one.low, one.high, CONFIDENCE) if one.known else ABSENT
