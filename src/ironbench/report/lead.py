"""What `lead` found: as text, JSON, a page and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from ironbench.analyse.differences import telling
from ironbench.analyse.lead import Lead, Leads, Peaks, WorkLead
from ironbench.analyse.rate import Rate
from ironbench.report import elements, image, plain
from ironbench.report.charts import lead as charts
from ironbench.report.charts import lead_growth
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.lead import words_of
from ironbench.report.numbers import NOT_KNOWN, number, quantity, unit_of
from ironbench.report.section import Section
from ironbench.report.sections.differences import difference_rows
from ironbench.words import counted
from ironbench.workloads.base import LEADING

_AT_PEAK = dict.fromkeys(LEADING, " at the peak")
_IN_TURNS = "Both were measured in turns, block by block; a lead holds for them as they were set up."
_NOT_IN_TURNS = (
    "The two were not measured in turns: a lead holds for these machines as they were set up, differences named below "
    "included."
)
_VALUES = "Values are medians of the trials. A ratio is that of their geometric means, with Welch's interval."
_SINGLE = "A side with a single trial has no spread, and a ratio with it no interval: it may be chance."


def text(found: Leads) -> str:
    """How the machines differ first, then peaks, then the lead at each number of clients."""
    blocks = [_title(found), _fair(found), _differences(found), "\n".join(sentences(found))]
    blocks += [f"{plain.table(peaks(found))}\n{_values(found)}"]
    blocks += [
        f"{plain.clean(work.work)}\n{plain.table(by_clients(found, work))}" for work in found.works if work.by_clients
    ]
    blocks.append("\n".join(f"! {plain.clean(line)}" for line in (*found.derived, *found.cautions, *found.apart)))
    return "\n\n".join(block for block in blocks if block)


def document(found: Leads) -> str:
    """The same as one JSON document."""
    works = [
        {
            "work": work.work,
            "peaks": None
            if work.peaks is None
            else {
                "clients": work.peaks.clients,
                "confirmed": work.peaks.confirmed,
                "values": dict(work.peaks.values),
                "rates": [
                    {"asked": one.rate, "kept": one.kept, "trials": len(one.trials)} for one in work.peaks.rates or ()
                ],
                "leads": {metric: _lead(one) for metric, one in work.peaks.leads.items()},
            },
            "by_clients": [{"clients": clients, **_lead(one)} for clients, one in work.by_clients],
        }
        for work in found.works
    ]
    whole = {
        "schema": 1,
        "baseline": found.a,
        "system": found.b,
        "cores": found.cores,
        "frequency_ratio": found.hertz_ratio,
        "frequency_kind": found.hertz_kind,
        "works": works,
        "apart": found.apart,
        "cautions": found.cautions,
        "derived": found.derived,
        "differences": [msgspec.to_builtins(row) for row in found.differences],
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()


def page(found: Leads) -> bytes:
    """One file, as the reports are."""
    drawn: dict[str, Chart] = {}
    sections = [
        Section("lead", "Peak against peak", _values(found), _drawn(charts.peaks(found)), (("", peaks(found)),))
    ]
    tables = tuple((work.work, by_clients(found, work)) for work in found.works if work.by_clients)
    sections += [Section("clients", "At each number of clients", "", _drawn(lead_growth.by_clients(found)), tables)]
    sections = [section for section in sections if section.charts or section.tables]
    told = telling(found.differences)[0]
    if told:
        rows = Table(("", found.a, found.b), tuple(difference_rows(told)))
        sections.insert(0, Section("differences", "What differs", lead=_fair(found), tables=(("", rows),)))
    said = "".join(f"<p>{escape(line)}</p>" for line in sentences(found))
    body = (
        f'<header class="top"><h1>{escape(_title(found))}</h1></header><main>{elements.NO_SCRIPT}'
        f'<div class="headline">{said}</div>{elements.cautions([*found.derived, *found.cautions, *found.apart])}'
        f"{''.join(elements.section(one, 'lead', drawn) for one in sections)}</main>"
    )
    return elements.page(_title(found), [body], drawn)


def png(found: Leads) -> bytes:
    """The charts with their sentences, drawn without a browser."""
    shown = [*_drawn(charts.peaks(found)), *_drawn(lead_growth.by_clients(found))]
    return image.charts_png(
        _title(found),
        [*sentences(found), *found.derived, _fair(found), *(f"Note: {line}" for line in found.cautions)],
        shown,
    )


def _values(found: Leads) -> str:
    every = [one for work in found.works if work.peaks for one in work.peaks.leads.values()]
    said = [_VALUES] if any(one.low is not None for one in every) else []
    return " ".join([*said, *([_SINGLE] if any(one.low is None for one in every) else [])])


def _drawn(chart: Chart | None) -> tuple[Chart, ...]:
    return (chart,) if chart else ()


def sentences(found: Leads) -> list[str]:
    """What the hardware would let expect, and each work's peak in words."""
    said = [_hardware(found)]
    for work in found.works:
        if work.peaks is None:
            said.append(f"{work.work}: one of them has no usable trial.")
            continue
        parts = [
            f"{_title_of(m, work.peaks)} × {number(one.ratio)} ({one.words})" for m, one in work.peaks.leads.items()
        ]
        if work.peaks.rates:
            parts.insert(0, _kept(found, work.peaks.rates))
        chosen = not work.peaks.confirmed and any(len(curve.points) > 1 for curve in work.curves)
        fresh = "" if not chosen else " (on the trials that chose the peaks: not confirmed)"
        said.append(f"{work.work}: {'; '.join(parts)}{fresh}.")
    return said


def _kept(found: Leads, rates: Sequence[Rate]) -> str:
    """`both kept the rate`, or what came of it on each side."""
    if all(one.is_kept for one in rates):
        return "both kept the rate"
    said = " and ".join(f"{name} {one.words}" for name, one in zip((found.a, found.b), rates, strict=True))
    return f"the rate: {said}; response times are then not compared"


def _title_of(metric: str, shown: Peaks) -> str:
    return f"{words_of(metric)}{' at the rate' if shown.rates else _AT_PEAK.get(metric, '')}"


def peaks(found: Leads) -> Table:
    """As F7 shows them: values of both, and the ratio with A as 1."""
    rows = []
    for work in found.works:
        if work.peaks is None:
            continue
        for metric, (a, b) in work.peaks.values.items():
            one = work.peaks.leads.get(metric)
            of_a, of_b = work.peaks.clients
            at = f"{of_a} and {of_b} clients" if of_a != of_b else f"{counted(of_a, 'client')} each"
            rows.append(
                (f"{work.work}, {_title_of(metric, work.peaks)}", *_both(metric, a, b), _ratio(one), _interval(one), at)
            )
    rows.append(
        (
            f"{found.hertz_kind} clock frequency".strip(),
            "",
            "",
            number(found.hertz_ratio) if found.hertz_ratio else NOT_KNOWN,
            "",
            "",
        )
    )
    cores = [str(count) if count else NOT_KNOWN for count in found.cores]
    a_cores, b_cores = found.cores
    rows.append(("cores", *cores, number(b_cores / a_cores) if a_cores and b_cores else NOT_KNOWN, "", ""))
    return Table(("", found.a, found.b, f"{found.b} / {found.a}", "95 % interval", "at"), tuple(rows), numbers=True)


def by_clients(found: Leads, work: WorkLead) -> Table:
    """The lead in throughput at each number of clients (or threads)."""
    points = [{point.clients: point for point in curve.points} for curve in work.curves]
    rows = []
    for clients, one in work.by_clients:
        values = [side[clients].metrics["throughput"].centre for side in points]
        rows.append((str(clients), *_both("throughput", *values), _ratio(one), _interval(one), one.words))
    head = ("clients", found.a, found.b, f"{found.b} / {found.a}", "95 % interval", f"{found.b} …")
    return Table(head, tuple(rows), numbers=True)


def _title(found: Leads) -> str:
    return f"{found.b} beside {found.a}"


def _hardware(found: Leads) -> str:
    known = [str(count) if count else NOT_KNOWN for count in found.cores]
    cores = f"{known[1]} {'core' if found.cores[1] == 1 else 'cores'} against {known[0]}"
    if not found.hertz_ratio:
        return f"Beside {found.a}, {found.b} has {cores}. Their clock frequencies cannot be compared."
    clock = f"the {found.hertz_kind} clock frequency × {number(found.hertz_ratio)}"
    return f"Beside {found.a}, {found.b} has {clock}, and {cores}."


def _differences(found: Leads) -> str:
    told = telling(found.differences)[0]
    if not told:
        return "The two do not differ in anything that is known of them."
    return "What differs\n" + plain.facts(Table((), (("", found.a, found.b), *difference_rows(told))))


def _fair(found: Leads) -> str:
    return _IN_TURNS if found.in_turns else _NOT_IN_TURNS


def _both(metric: str, *values: float) -> tuple[str, ...]:
    return tuple(quantity(value, unit_of(metric)) for value in values)


def _ratio(one: Lead | None) -> str:
    return number(one.ratio) if one else NOT_KNOWN


def _interval(one: Lead | None) -> str:
    if one is None or one.low is None or one.high is None:
        return "–"
    return f"{number(one.low)} to {number(one.high)}"


def _lead(one: Lead) -> dict[str, Any]:
    return {**msgspec.to_builtins(one), "words": one.words}
