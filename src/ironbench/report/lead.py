"""The result of `lead`: as text, JSON, a page and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ironbench.model.described import LEADING
from ironbench.model.record import Record
from ironbench.report import plain, wording
from ironbench.report.cell import ABSENT, CONFIDENCE, EMPTY, UNKNOWN, Missing, Row, TableCell, count
from ironbench.report.charts import lead as charts
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.lead import words_of
from ironbench.report.facts import difference_rows
from ironbench.report.numbers import NOT_KNOWN, failed_note, number, unit_of
from ironbench.report.page import Page
from ironbench.report.section import Answer, AnswerPoint, Section
from ironbench.study.differences import telling
from ironbench.study.lead import Lead, Leads, Peaks, WorkLead, trials_of
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


def text(leads: Leads) -> str:
    """How the machines differ first, then peaks, then the lead at each number of clients."""
    blocks = [_title(leads), _fair(leads), _differences(leads), "\n".join(sentences(leads))]
    blocks += [f"{plain.table(peaks(leads))}\n{_values(leads)}"]
    blocks += [
        "\n".join(filter(None, (plain.clean(work.work), plain.table(by_clients(leads, work)), _of_rows(work))))
        for work in leads.works
        if work.by_clients
    ]
    blocks.append(
        "\n".join(f"! {plain.clean(line)}" for line in (*leads.derived, *_cautions(leads), *wording.texts(leads.apart)))
    )
    return "\n\n".join(block for block in blocks if block)


def _cautions(leads: Leads) -> list[str]:
    return wording.texts(leads.cautions)


def document(leads: Leads) -> str:
    """The same as one JSON document."""
    works = [
        {
            "work": work.work,
            "peaks": None
            if work.peaks is None
            else {
                "clients": work.peaks.clients,
                "confirmed": work.peaks.confirmed,
                "values": {metric: one.centres for metric, one in work.peaks.leads.items()},
                "rates": [
                    {"asked": one.rate, "kept": one.kept, "trials": len(one.trials)} for one in work.peaks.rates or ()
                ],
                "leads": {metric: _lead(one) for metric, one in work.peaks.leads.items()},
            },
            "by_clients": [{"clients": clients, **_lead(one)} for clients, one in work.by_clients],
        }
        for work in leads.works
    ]
    whole = {
        "schema": 1,
        "baseline": leads.a,
        "system": leads.b,
        "cores": leads.cores,
        "frequency_ratio": leads.hertz_ratio,
        "frequency_kind": leads.hertz_kind,
        "works": works,
        "apart": wording.texts(leads.apart),
        "cautions": _cautions(leads),
        "derived": leads.derived,
        "differences": [msgspec.to_builtins(row) for row in leads.differences],
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()


def page(leads: Leads) -> Page:
    """For a browser."""
    sections = [
        Section("lead", "Peak against peak", _values(leads), _drawn(charts.peaks(leads)), (("", peaks(leads)),))
    ]
    tables = tuple((work.work, by_clients(leads, work)) for work in leads.works if work.by_clients)
    of_rows = next((text for work in leads.works if (text := _of_rows(work))), "")
    sections += [Section("clients", "At each number of clients", of_rows, _drawn(charts.by_clients(leads)), tables)]
    sections = [section for section in sections if section.charts or section.tables]
    differences = telling(leads.differences)[0]
    if differences:
        rows = Table(("", leads.a, leads.b), tuple(difference_rows(differences)))
        sections.insert(0, Section("differences", "What differs", lead=_fair(leads), tables=(("", rows),)))
    first, *rest = sentences(leads)
    return Page(
        title=_title(leads),
        lead="",
        answer=Answer(AnswerPoint(first), tuple(map(AnswerPoint, rest))),
        sections=tuple(sections),
        cautions=(*leads.derived, *_cautions(leads), *wording.texts(leads.apart)),
    )


def png(leads: Leads) -> bytes:
    """The charts with their sentences, drawn without a browser."""
    from ironbench.report.formats import png as picture

    shown = [*_drawn(charts.peaks(leads)), *_drawn(charts.by_clients(leads))]
    return picture.charts_png(
        _title(leads),
        [*sentences(leads), *leads.derived, _fair(leads), *(f"Note: {line}" for line in _cautions(leads))],
        shown,
    )


def _values(leads: Leads) -> str:
    every = [one for work in leads.works if work.peaks for one in work.peaks.leads.values()]
    notes = [_VALUES] if any(one.low is not None for one in every) else []
    notes += [_SINGLE] if any(one.low is None for one in every) else []
    notes += [_ONE_RUN] if any(one.single_run and one.low is not None for one in every) else []
    return " ".join(notes)


def _of_rows(work: WorkLead) -> str:
    """Why a row may say another lead than the peak does."""
    return _OF_ROWS if work.by_clients and work.peaks and work.peaks.confirmed and len(work.by_clients) > 1 else ""


def _drawn(chart: Chart | None) -> tuple[Chart, ...]:
    return (chart,) if chart else ()


def sentences(leads: Leads) -> list[str]:
    """What the hardware would let expect, and each work's peak in words."""
    lines = [text for text in (_hardware(leads),) if text]
    for work in leads.works:
        if work.peaks is None:
            lines.append(f"{work.work}: one of them has no usable trial.")
            continue
        parts = [
            f"{_title_of(m, work.peaks)} × {number(one.ratio)} ({wording.text(one.outcome)})"
            for m, one in work.peaks.leads.items()
        ]
        parts += [
            f"{failed_percent(lost)} of the {counted_in(side.main.trials)[1]} of {side.name} failed"
            for side in work.curves
            if side.main and (lost := failed_share(side.main.trials))
        ]
        if work.peaks.rates:
            parts.insert(0, _rate_outcomes(leads, work.peaks.rates))
        chosen = not work.peaks.confirmed and any(len(curve.points) > 1 for curve in work.curves)
        fresh = "" if not chosen else " (on the trials that chose the peaks: not confirmed)"
        lines.append(f"{work.work}: {'; '.join(parts)}{fresh}.")
    return lines


def _rate_outcomes(leads: Leads, rates: Sequence[Rate]) -> str:
    """`both kept the rate`, or what came of it on each side."""
    if all(one.is_kept for one in rates):
        return "both kept the rate"
    sides = zip((leads.a, leads.b), rates, strict=True)
    outcomes = " and ".join(f"{name} {wording.text(one.outcome)}" for name, one in sides)
    return f"the rate: {outcomes}; response times are then not compared"


def _title_of(metric: str, shown: Peaks) -> str:
    place = " at the rate" if shown.rates else "" if shown.alone else _AT_PEAK.get(metric, "")
    return f"{words_of(metric)}{place}"


def peaks(leads: Leads) -> Table:
    """As F7 shows them: values of both, and the ratio with A as 1."""
    rows: list[Row] = []
    for work in leads.works:
        if work.peaks is None:
            continue
        for metric, one in work.peaks.leads.items():
            trials = [side.main.trials if side.main else () for side in work.curves]
            of_a, of_b = work.peaks.clients
            at = f"{of_a} and {of_b} clients" if of_a != of_b else f"{counted(of_a, 'client')} each"
            rows.append(
                (
                    f"{work.work}, {_title_of(metric, work.peaks)}",
                    *_both(metric, one.centres, trials),
                    _ratio(one.ratio),
                    _interval(one),
                    at,
                )
            )
    if leads.clock or leads.hertz_ratio is None:
        clock = f"{leads.hertz_kind} clock frequency".strip()
        rows.append((clock, EMPTY, EMPTY, _ratio(leads.clock), EMPTY, EMPTY))
    if leads.cores_differ:
        cores = [count(known) if known else UNKNOWN for known in leads.cores]
        a_cores, b_cores = leads.cores
        rows.append(("cores", *cores, _ratio(b_cores / a_cores if a_cores and b_cores else None), EMPTY, EMPTY))
    return Table(("", leads.a, leads.b, f"{leads.b} / {leads.a}", "95 % interval", "at"), tuple(rows), numbers=True)


def by_clients(leads: Leads, work: WorkLead) -> Table:
    """The lead in throughput at each number of clients (or threads)."""
    rows = []
    for clients, one in work.by_clients:
        both = _both("throughput", one.centres, [trials_of(side, clients) for side in work.curves])
        rows.append((count(clients), *both, _ratio(one.ratio), _interval(one), wording.text(one.outcome)))
    head = ("clients", leads.a, leads.b, f"{leads.b} / {leads.a}", "95 % interval", f"{leads.b} …")
    return Table(head, tuple(rows), numbers=True)


def _title(leads: Leads) -> str:
    return f"{leads.b} compared with {leads.a}"


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


def _differences(leads: Leads) -> str:
    differences = telling(leads.differences)[0]
    if not differences:
        return "The two do not differ in anything that is known of them."
    return "What differs\n" + plain.facts(Table((), (("", leads.a, leads.b), *difference_rows(differences))))


def _fair(leads: Leads) -> str:
    return _IN_TURNS if leads.in_turns else _NOT_IN_TURNS


def _both(metric: str, values: Sequence[float], sides: Sequence[Sequence[Record]]) -> tuple[TableCell, ...]:
    """The values of both; a rate with its failures."""
    return tuple(
        TableCell(value, unit_of(metric), note=failed_note(trials) if metric == "throughput" else "")
        for value, trials in zip(values, sides, strict=True)
    )


def _ratio(value: float | None) -> TableCell | Missing:
    return TableCell(value, "times", bare=True) if value else UNKNOWN


def _interval(one: Lead) -> TableCell | Missing:
    if one.low is None or one.high is None:
        return ABSENT
    return TableCell(None, "times", one.low, one.high, CONFIDENCE)


def _lead(one: Lead) -> dict[str, Any]:
    return {**msgspec.to_builtins(one), "words": wording.text(one.outcome)}
