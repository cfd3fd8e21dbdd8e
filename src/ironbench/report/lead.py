"""The page of `ironbench lead A B`: how two machines differ, the peaks of each workload side by side, and the ratio at
each number of clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from ironbench.model.described import LEADING
from ironbench.model.record import Record
from ironbench.report import theme, wording
from ironbench.report.cell import ABSENT, CONFIDENCE, EMPTY, UNKNOWN, Missing, Row, TableCell, count
from ironbench.report.charts import base, rows
from ironbench.report.charts.base import Chart, Depth, Key, Table, joined, places, whiskered
from ironbench.report.charts.effects import ticks
from ironbench.report.facts import difference_rows
from ironbench.report.numbers import failed_note, unit_of
from ironbench.report.page import Answer, AnswerPoint, Page, Section, with_rows
from ironbench.report.wording.answers import lead_answer
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.values import CI
from ironbench.study.compare import ComparedMetric, ConfigurationComparison, MeanRatio
from ironbench.study.differences import most_relevant
from ironbench.study.lead import Leads, WorkLead, outcome, trials_of
from ironbench.study.rate import Rate
from ironbench.study.subjects import counted_in, failed_share
from ironbench.words import counted

_AT_PEAK = dict.fromkeys(LEADING, " at the peak")


def page(leads: Leads) -> Page:
    """Returns the page. Only HTML and pictures show the charts, because the tables contain the same figures."""
    drawn = [chart and replace(chart, depth=Depth.PAGE) for chart in (peak_chart(leads), clients_chart(leads))]
    of_peaks, of_clients = ((chart,) if chart else () for chart in drawn)
    main = most_relevant(leads.differences)[0]
    differences = Table(("", leads.a, leads.b), difference_rows(main), words=True)
    alike = () if main else (lead_answer.no_difference(),)
    fair = lead_answer.interleaved() if leads.in_turns else lead_answer.not_interleaved()
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
                "Peak throughput",
                charts=of_peaks,
                tables=with_rows(peaks(leads)),
                sentences=tuple(filter(None, (_values(leads),))),
            ),
            Section("clients", "At each number of clients", charts=of_clients, tables=tables, sentences=of_rows),
        ),
        caveats=(*wording.texts(leads.caveats), *wording.texts(leads.apart)),
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
        "caveats": wording.texts(leads.caveats),
        "derived": leads.derived,
        "differences": [msgspec.to_builtins(row) for row in leads.differences],
    }


def _peak_fields(leads: Leads, work: WorkLead, peaks: ConfigurationComparison) -> dict[str, Any]:
    known = list(_with_means(peaks.rows))
    return {
        "clients": work.clients,
        "confirmed": work.confirmed,
        "values": {row.metric: means.centres for row, means in known},
        "rates": [{"asked": one.rate, "kept": one.kept, "trials": len(one.trials)} for one in work.rates or ()],
        "leads": {row.metric: _ratio_fields(leads, row, means) for row, means in known},
    }


def _ratio_fields(leads: Leads, row: ComparedMetric, means: MeanRatio) -> dict[str, Any]:
    """Returns the fields of a ratio for programs. Without a confidence interval, `low` and `high` are None."""
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
    notes = [lead_answer.geometric_means()] if any(one.known for one in every) else []
    notes += [lead_answer.single_trial()] if any(not one.known for one in every) else []
    notes += [lead_answer.single_run()] if any(one.single_run and one.known for one in every) else []
    return " ".join(notes)


def _of_rows(work: WorkLead) -> str:
    """Explains why the ratio at a number of clients may differ from the ratio of the peaks. Returns an empty text if
    the peaks have no confirmation trials, or if there is only one number of clients."""
    return lead_answer.rows_and_peak() if work.peaks and work.confirmed and len(work.by_clients) > 1 else ""


def sentences(leads: Leads) -> list[str]:
    """States how the hardware of the two systems differs, and the ratio of the peaks for each workload."""
    lines = [text for text in (_hardware(leads),) if text]
    for work in leads.works:
        if work.peaks is None:
            lines.append(lead_answer.no_usable_trial(work.work))
            continue
        parts = [
            f"{_title_of(row.metric, work)}: {_described(leads, row, means)}"
            for row, means in _with_means(work.peaks.rows)
        ]
        parts += [
            lead_answer.failed(lost, counted_in(side.main.trials)[1], side.name)
            for side in work.curves
            if side.main and (lost := failed_share(side.main.trials))
        ]
        if work.rates:
            parts.insert(0, _rate_outcomes(leads, work.rates))
        chosen = not work.confirmed and any(len(curve.points) > 1 for curve in work.curves)
        lines.append(lead_answer.peaks(work.work, parts, confirmed=not chosen))
    return lines


def _outcome(leads: Leads, row: ComparedMetric, means: MeanRatio) -> str:
    return wording.text(outcome(means, leads.margin, row.better))


def _rate_outcomes(leads: Leads, rates: Sequence[Rate]) -> str:
    """States whether each system sustained its target rate."""
    if all(one.is_kept for one in rates):
        return lead_answer.both_sustained()
    of_a, of_b = (one.outcome for one in rates)
    return lead_answer.outcomes(leads.a, of_a, leads.b, of_b)


def _title_of(metric: str, work: WorkLead) -> str:
    place = " at the rate" if work.rates else "" if work.alone else _AT_PEAK.get(metric, "")
    return f"{words_of(metric)}{place}"


def peaks(leads: Leads) -> Table:
    """Returns the table of the peaks: the values of both systems, and the ratio of the second system to the first
    one."""
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
    return Table(("", leads.a, leads.b, f"{leads.b} / {leads.a}", CI, "at"), tuple(rows))


def by_clients(leads: Leads, work: WorkLead) -> Table:
    """Returns a row for each number of clients, with the results of both systems and their ratio."""
    rows: list[Row] = []
    for clients, compared in work.by_clients:
        trials = [trials_of(side, clients) for side in work.curves]
        for row, means in _with_means([compared]):
            both, words = _both(row.metric, means, trials), _outcome(leads, row, means)
            rows.append((count(clients), *both, _ratio(means.ratio), _interval(means), words))
    head = ("clients", leads.a, leads.b, f"{leads.b} / {leads.a}", CI, f"{leads.b} …")
    return Table(head, tuple(rows))


def _hardware(leads: Leads) -> str:
    """Describes the differences in cores and clock frequency. Returns an empty text if there are none."""
    cores = leads.cores if leads.cores_differ else None
    return lead_answer.hardware(
        leads.a, leads.b, leads.clock, leads.hertz_kind, cores, comparable=bool(leads.hertz_ratio)
    )


def _both(metric: str, means: MeanRatio, sides: Sequence[Sequence[Record]]) -> tuple[TableCell, ...]:
    """Returns the cells with the values of both systems. A throughput also shows the percentage of failed
    transactions."""
    return tuple(
        TableCell(value, unit_of(metric), note=failed_note(trials) if metric == "throughput" else "")
        for value, trials in zip(means.centres, sides, strict=True)
    )


def _ratio(value: float | None) -> TableCell | Missing:
    return TableCell(value, "times", bare=True) if value else UNKNOWN


def _interval(one: MeanRatio) -> TableCell | Missing:
    return TableCell(None, "times", one.low, one.high, CONFIDENCE) if one.known else ABSENT


# Charts.

_SHORT = {"response_time_mean_s": "response time"}
"""Short names of metrics, which replace the usual names on this page."""


def words_of(metric: str) -> str:
    return _SHORT.get(metric) or metric_words(metric)


def peak_chart(leads: Leads) -> Chart | None:
    """Draws the ratio of the two systems' peaks for each workload. Returns None if no workload has a peak on both
    sides."""
    shown = [
        (work, row, row.means)
        for work in leads.works
        if work.peaks is not None
        for row in work.peaks.rows
        if row.means is not None
    ]
    if not any(work.peaks for work in leads.works):
        return None
    data: list[dict[str, Any]] = [
        {
            "name": f"{work.work}: {words_of(row.metric)}",
            "metric": words_of(row.metric),
            "text": _described(leads, row, means),
            **_ends(means),
        }
        for work, row, means in shown
    ]
    named = rows.with_positions(data)
    metrics = list(dict.fromkeys(row["metric"] for row in data))
    reach = [row[end] for row in named for end in ("low", "high")] + [1.0, leads.clock or 1.0]
    domain = [min(0.9, min(reach) * 0.92), max(1.1, max(reach) * 1.08)]
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False, "clamp": True},
        "axis": {
            "title": f"{leads.b} / {leads.a} (log scale)",
            "format": "~g",
            "values": ticks(domain),
            "grid": True,
        },
    }
    layers = [*rows.frame(len(named), "names", "text"), *_rules(leads), *_marks(len(named), x, metrics)]
    datasets = {"names": named, "points": named, "one": [{"at": 1.0}]}
    datasets |= {"clock": [{"at": leads.clock}]} if leads.clock else {}
    keys = list(base.keys(metrics))
    keys += [Key("ratio of the clock frequencies", "muted", "dash")] if leads.clock else []
    table = Table(
        ("peak", f"ratio to {leads.a}", CI),
        tuple(
            (row["name"], cell.alone, Missing("one trial") if cell.low is None else cell.range)
            for row, (_, _, means) in zip(named, shown, strict=True)
            for cell in [_with_interval(means)]
        ),
    )
    return Chart(
        "lead", f"Peaks of {leads.b} compared with {leads.a}", f"Ratios at the peak. {base.each_row(table)}.",
        base.specification(layers, datasets, rows.height(len(named))), table, legend=tuple(keys), wide=True,
    )  # fmt: skip


def _described(leads: Leads, row: ComparedMetric, means: MeanRatio) -> str:
    """Formats a ratio with its meaning, such as `1.27x (27% higher)`."""
    return lead_answer.ratio(means.ratio, outcome(means, leads.margin, row.better))


def _ends(one: MeanRatio) -> dict[str, float]:
    """Returns the ratio and the bounds of its confidence interval as fields of a Vega data row. Without a confidence
    interval, both bounds are equal to the ratio."""
    low, high = (one.low, one.high) if one.known else (one.ratio, one.ratio)
    return {"ratio": one.ratio, "low": low, "high": high}


def _with_interval(one: MeanRatio) -> TableCell:
    """Returns the cell of a ratio, with its confidence interval if there is one."""
    if not (one.known and one.low < one.high):
        return TableCell(one.ratio, "times")
    return TableCell(one.ratio, "times", one.low, one.high, CONFIDENCE)


def _rules(leads: Leads) -> list[dict[str, Any]]:
    """Returns the layers that draw a line at the ratio 1, and a dashed line at the ratio of the clock frequencies if it
    is known."""
    names = [("one", "@ink", [1, 0])] + ([("clock", "@muted", [5, 4])] if leads.clock else [])
    return [
        {
            "data": {"name": name},
            "mark": {"type": "rule", "color": colour, "strokeDash": dash},
            "encoding": {"x": {"field": "at", "type": "quantitative"}},
        }
        for name, colour, dash in names
    ]


def _marks(count: int, x: dict[str, Any], metrics: list[str]) -> list[dict[str, Any]]:
    y = rows.place(count)
    colour = {**base.colour(metrics), "field": "metric"}
    shape = {**base.shape(metrics), "field": "metric"}
    bar = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour}
    dot = {"x": {**x, "field": "ratio"}, "y": y, "color": colour, "shape": shape}
    return [
        {"data": {"name": "points"}, "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.55}, "encoding": bar},
        {
            "data": {"name": "points"},
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
            "encoding": dot,
        },
    ]


_GROUP = 0.6
"""At each number of clients, the workloads' points are side by side. Together, they take this fraction of the distance
to the next number of clients."""


def clients_chart(leads: Leads) -> Chart | None:
    """Draws the ratio at each number of clients. Returns None unless in some workload, both systems ran with the same
    two or more numbers of clients. Also returns None if there are too many workloads to distinguish."""
    works = [work for work in leads.works if len(work.by_clients) > 1]
    if not 0 < len(works) <= theme.SYSTEMS:
        return None
    names = [work.work for work in works]
    counts = sorted({clients for work in works for clients, _ in work.by_clients})
    by_place = {
        (work.work, clients): row.means for work in works for clients, row in work.by_clients if row.means is not None
    }
    # At each number of clients, the points of the workloads are drawn side by side, so that their confidence intervals
    # do not overlap.
    points: list[dict[str, Any]] = [
        {
            "system": work.work,
            "clients": clients,
            "place": counts.index(clients) + (place - (len(works) - 1) / 2) * _GROUP / len(works),
            "text": _described(leads, row, row.means),
            **_ends(row.means),
        }
        for place, work in enumerate(works)
        for clients, row in work.by_clients
        if row.means is not None
    ]
    reach = [row[end] for row in points for end in ("low", "high")] + [1.0, leads.clock or 1.0]
    scale = {"type": "log", "domain": [min(0.9, min(reach) * 0.95), max(1.1, max(reach) * 1.05)], "nice": False}
    lines = [{"at": 1.0}], [{"at": leads.clock}] if leads.clock else []
    keys = list(base.keys(names))
    keys += [Key(CI, "muted", "line")] if any(row["low"] < row["high"] for row in points) else []
    keys += [Key("ratio of the clock frequencies", "muted", "dash")] if leads.clock else []
    table = _clients_table(names, counts, by_place)
    x = places("clients or threads", [str(number) for number in counts])
    return Chart(
        "lead-by-clients",
        f"{leads.b} compared with {leads.a} at each number of clients",
        f"Ratios of throughput. {base.each_line(table, 'clients or threads')}.",
        base.specification(
            _clients_layers(names, x, scale), {"points": points, "one": lines[0], "clock": lines[1]}, 300
        ),
        table,
        f"throughput relative to {leads.a} (log scale)",
        tuple(keys),
        wide=True,
    )


def _clients_layers(names: list[str], x: dict[str, Any], scale: dict[str, Any]) -> list[dict[str, Any]]:
    y = {
        "field": "ratio",
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": None, "format": "~g", "values": ticks(scale["domain"])},
    }
    colour = base.colour(names)
    tooltip = [{"field": "system", "title": "work"}, {"field": "clients"}, {"field": "text", "title": "ratio"}]
    rules = [
        {
            "data": {"name": name},
            "mark": {"type": "rule", "color": tone, "strokeDash": dash},
            "encoding": {"y": {**y, "field": "at"}},
        }
        for name, tone, dash in (("one", "@ink", [1, 0]), ("clock", "@muted", [5, 4]))
    ]
    styles = colour, base.shape(names)
    return [*rules, joined("points", x, y, colour, 0.7), *whiskered("points", x, y, styles, tooltip)]


def _clients_table(names: list[str], counts: list[int], by_place: dict[tuple[str, int], MeanRatio]) -> Table:
    ratios = {place: replace(_with_interval(one), bare=True) for place, one in by_place.items()}
    rows = tuple((count(number), *(ratios.get((name, number), EMPTY) for name in names)) for number in counts)
    return Table(("clients", *names), rows)
