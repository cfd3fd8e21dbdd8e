"""The page of `ironbench cost`: what systems cost, and which systems meet a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ironbench.catalogue import prices
from ironbench.catalogue.typed import text_of
from ironbench.errors import InputError
from ironbench.model.cost import CostBreakdown, CostItem, CostRange
from ironbench.model.note import Note, note
from ironbench.model.purpose import AUXILIARY
from ironbench.model.record import Record, Status, machine_of
from ironbench.plan import offers
from ironbench.plan.offers import SystemsFile
from ironbench.records import Store
from ironbench.records.index import Listed
from ironbench.report import wording
from ironbench.report.cell import ABSENT, CONFIDENCE, EMPTY, ESTIMATE, Content, Missing, Row, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.derived import sentences
from ironbench.report.numbers import amount, number
from ironbench.report.page import Answer, AnswerPoint, Page, Section
from ironbench.report.wording.answers import cost_answer
from ironbench.study import leaderboard
from ironbench.study import target as targets
from ironbench.study.cost import ROUNDING, Costs, RankedSystem, StoredTrials, SystemCost, costs


def page(costs: Costs) -> Page:
    """Returns the page, which contains the advice, a table of the systems, and their cost breakdowns."""
    points = [AnswerPoint(text) for text in advice(costs) or [_single_system_answer(costs)]]
    bills = [
        Section(
            f"bill{place}",
            f"Cost breakdown: {row.bill.offer.name}",
            sentences=tuple(wording.sentences(row.bill.caveats)),
            tables=_bill(row.bill),
        )
        for place, row in enumerate(costs.rows)
        if row.bill is not None
    ]
    return Page(
        title=costs.question or "Cost of systems",
        lead=cost_answer.scope(costs.target.text if costs.target else "", costs.work),
        answer=Answer(points[0], tuple(points[1:])),
        sections=(Section("systems", "Systems", tables=(("", _systems(costs)),)), *bills),
        caveats=tuple(f"{marked(row)}: {caveat}" for row in costs.rows for caveat in wording.texts(row.caveats)),
        notes=(*_sources(costs), *wording.sentences(costs.notes)),
        derived=" ".join(costs.derived),
        fields=partial(_fields, costs),
    )


def _single_system_answer(costs: Costs) -> str:
    """Returns the answer for a single system, which cannot be compared with another one."""
    row = costs.rows[0] if costs.rows else None
    if row is None:
        return cost_answer.nothing_to_compare()
    if row.bill is None:
        return cost_answer.unknown_price(row.name)
    return cost_answer.costs(marked(row), f"{money(row.bill)}{_over(row.bill)}")


def _fields(costs: Costs) -> dict[str, Any]:
    """Returns the values of the page for programs. Amounts of money are strings, because floating-point numbers could
    be inexact."""
    return {
        "schema": 1,
        "question": costs.question,
        "target": msgspec.to_builtins(costs.target) if costs.target else None,
        "work": costs.work,
        "derived": list(costs.derived),
        "unit": costs.unit,
        "systems": [{**_row(row), **_rank_fields(row, costs)} for row in costs.rows],
        "cheapest": costs.cheapest.name if costs.cheapest else None,
        "nearest": costs.nearest.name if costs.nearest else None,
        "tied": [row.name for row in costs.tied],
        "undecided": [row.name for row in costs.undecided],
        "unmeasured": [row.name for row in costs.unmeasured],
        "notes": wording.sentences(costs.notes),
        "advice": advice(costs),
    }


def advice(costs: Costs) -> list[str]:
    """Names the cheapest system that meets the target. If no system meets it, names the system that came closest to it.
    Without a target, compares each system with the first one."""
    if costs.target is not None:
        return _target_advice(costs)
    first = costs.rows[0] if costs.rows else None
    if first is None:
        return []
    names = _Names()
    per_price = _per_price(costs, names)
    each = [_against_first(row, first, names) for row in costs.rows[1:] if row.bill and first.priced]
    return [*per_price, *each]


class _Names:
    """Formats the names of systems in one text. When a system is named for the first time, the number of its flagged
    trials follows the name."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def __call__(self, row: SystemCost) -> str:
        if row.name in self._named:
            return row.name
        self._named.add(row.name)
        return marked(row)


def _per_price(costs: Costs, names: _Names) -> list[str]:
    """Names the system with the most work per price, and compares the other systems with it. Returns an empty list if
    fewer than two systems have a price, or if the performance of every system is unknown."""
    currency = next((row.bill.currency for row in costs.rows if row.bill and row.bill.currency), "")
    ranked = [one.row for one in costs.ranking]
    others = [row for row in costs.rows if row not in ranked and row.priced]
    if len(ranked) + len(others) < 2 or (not ranked and not any(map(_has_records_or_score, others))):
        return []
    lines = _ranking(costs.ranking, currency, names) if len(ranked) > 1 else []
    if others:
        reasons: dict[str, list[str]] = {}
        for row in others:
            reasons.setdefault(_why_not_ranked(row), []).append(names(row))
        lines.append(cost_answer.not_ranked(reasons, currency, not lines))
    return lines


def _has_records_or_score(row: SystemCost) -> bool:
    return bool(row.score) or row.other_hardware


def _why_not_ranked(row: SystemCost) -> str:
    if row.score is not None:
        return cost_answer.only_one_trial()
    return cost_answer.other_hardware() if row.other_hardware else cost_answer.no_score()


def _ranking(ranking: Sequence[RankedSystem], currency: str, names: _Names) -> list[str]:
    leaders = [one.row for one in ranking if one.rank == 1]
    best = leaders[0]
    if len(leaders) > 1:
        ratios = [_more(row.work_per_price_over(best), row, best) for row in leaders[1:]]
        lines = [cost_answer.tied(list(map(names, leaders)), [row.name for row in leaders], ratios, currency)]
    else:
        next_best = ranking[1].row
        ratio = _more(best.work_per_price_over(next_best), best, next_best)
        only_two = len(ranking) == 2
        lines = [cost_answer.most_work(names(best), names(next_best), ratio, currency, only_two)]
    for one in ranking[len(leaders) + (len(leaders) == 1) :]:
        if one.behind is not None:
            ratio = _more(one.row.work_per_price_over(one.behind), one.row, one.behind)
            lines.append(cost_answer.gives_less(names(one.row), names(one.behind), ratio, currency))
    return lines


def _more(ratio: CostRange | None, row: SystemCost, other: SystemCost) -> str:
    if ratio is None:
        return ""
    known = not (row.repeats or other.repeats) or (row.runs > 1 and other.runs > 1)
    return cost_answer.more(ratio, row.estimate or other.estimate, known)


def doubts(costs: Costs) -> tuple[bool, list[str]]:
    """Returns whether all systems miss the target, and the reasons why the answer is not a clear yes. If there are no
    such reasons, the list is empty."""
    attained = [row.target for row in costs.rows if row.target is not None]
    assert costs.target is not None
    deciding = (costs.cheapest, *costs.tied) if costs.cheapest else costs.rows
    met = [row for row in deciding if row.target and row.target.meets]
    if not met:
        missed = bool(attained) and all(one.misses for one in attained)
        outcome = f"{'missed' if missed else 'inconclusive'}: {costs.target.text}"
        return missed, [outcome, *(marked(row) for row in costs.rows if row.flagged)]
    cheaper = cost_answer.open_cheaper(*_open_names(costs))
    open_still = f"inconclusive: cheaper systems may also meet the target {costs.target.text}: {cheaper}"
    reasons = [open_still] if cheaper else []
    return False, [*reasons, *(marked(row) for row in met if row.flagged)]


def _open_names(costs: Costs) -> tuple[list[str], list[str]]:
    return [row.name for row in costs.undecided], [row.name for row in costs.unmeasured]


def marked(row: SystemCost) -> str:
    """Returns a system's name. If it has flagged trials, their number follows the name: `one core`, `one core (2 of 3
    trials flagged)`."""
    return f"{row.name} ({flags})" if (flags := _flags(row)) else row.name


def _flags(row: SystemCost) -> str:
    """States the number of flagged trials, as in `2 of 3 trials flagged`. Returns an empty text if there are none."""
    return cost_answer.flags(row.flagged, row.trials)


def _target_advice(costs: Costs) -> list[str]:
    if costs.cheapest is not None and costs.cheapest.bill is not None:
        bill, names = costs.cheapest.bill, [marked(row) for row in (costs.cheapest, *costs.tied)]
        undecided, unmeasured = [[marked(row) for row in of] for of in (costs.undecided, costs.unmeasured)]
        lines = [cost_answer.cheapest(names, money(bill), _over(bill), undecided, unmeasured)]
        if undecided or unmeasured:
            assert costs.target is not None
            lines.append(cost_answer.decide_cheaper(*_open_names(costs), costs.target.rate))
        return lines
    met = [marked(row) for row in costs.rows if row.target and row.target.meets]
    if met:
        return [cost_answer.met_without_prices(met)]
    if costs.nearest is not None and costs.nearest.target is not None:
        near = [marked(row) for row in (costs.nearest, *costs.tied)]
        return [cost_answer.nearest(near, costs.nearest.target.why)]
    assert costs.target is not None
    return [cost_answer.not_measured_at(costs.target.rate)]


def _against_first(row: SystemCost, first: SystemCost, names: _Names) -> str:
    """Compares a system with the first one. Cost and work are compared separately."""
    assert row.bill is not None and first.bill is not None
    less = float(1 - row.bill.total / first.bill.total)
    work = row.work_over(first)
    inconclusive = work is not None and work.low < 1 - ROUNDING and work.high > 1 + ROUNDING
    return cost_answer.cost_and_work(names(row), names(first), less, _more(work, row, first), inconclusive)


def money(bill: CostBreakdown) -> str:
    """Formats an amount of money, such as `247 392 USD`. Cents are shown only if there are any."""
    return f"{ESTIMATE if bill.estimate else ''}{amount(bill.total)} {bill.currency}".rstrip()


def _systems(costs: Costs) -> Table:
    unit = costs.unit or "score"
    currency = next((row.bill.currency for row in costs.rows if row.bill and row.bill.currency), "")
    over = next((text for row in costs.rows if row.bill and (text := _over(row.bill))), "")
    head = ["system", "cores", f"cost{over}"]
    ranks = [0, 0, 0]
    rows: list[list[Content]] = [
        [row.name, count(row.cores) if row.cores else ABSENT, _money(row.bill) if row.bill else ABSENT]
        for row in costs.rows
    ]
    if costs.target:
        head.append("target")
        ranks.append(0)
        for row, cells in zip(costs.rows, rows, strict=True):
            cells.append(_attained(row))
    else:
        head += [unit, f"{unit} per core", *([f"{unit} per 1000 {currency}"] if currency else [])]
        ranks += [0, 2, *([1] if currency else [])]
        places = [one.rank for one in costs.ranking]
        for row, cells in zip(costs.rows, rows, strict=True):
            figures = (row.score, row.per_core, *([row.per_thousand] if currency else []))
            cells += [_score(figure, row.estimate) for figure in figures]
        if len(places) > 1:
            head.append("rank")
            ranks.append(0)
            of_rows = {one.row.name: one.rank for one in costs.ranking}
            for row, cells in zip(costs.rows, rows, strict=True):
                place = of_rows.get(row.name)
                cells.append(ABSENT if place is None else f"{place}{' (tied)' if places.count(place) > 1 else ''}")
    return Table(tuple(head), tuple(map(tuple, rows)), ranks=tuple(ranks))


def _attained(row: SystemCost) -> Content:
    if row.target is None:
        return ABSENT
    why = f"{'met: ' if row.target.meets else ''}{wording.text(row.target.why)}"
    return f"{why} ({flags})" if (flags := _flags(row)) else why


def _bill(bill: CostBreakdown) -> tuple[tuple[str, Table], ...]:
    rows: list[Row] = [
        (
            line.name,
            f"{amount(line.units)} {line.unit}",
            f"{amount(line.price)} {line.currency}{'' if line.every == 'once' else f' per {line.every}'}",
            TableCell(float(line.amount), "money", estimate=line.estimate),
            _counted(line),
        )
        for line in bill.lines
    ]
    rows.append((f"total{_over(bill)}", EMPTY, EMPTY, _money(bill), EMPTY))
    return (("", Table(("item", "units", "price", "amount", "calculation"), tuple(rows), ranks=(0, 0, 0, 0, 0))),)


def _money(bill: CostBreakdown) -> TableCell:
    return TableCell(float(bill.total), bill.currency or "money", estimate=bill.estimate)


def _over(bill: CostBreakdown) -> str:
    """Returns the period of the costs, such as ` over 3 years`. Returns an empty text if everything is paid once."""
    return f" over {amount(bill.years)} {'year' if bill.years == 1 else 'years'}" if bill.years else ""


def _counted(line: CostItem) -> str:
    """Returns how the amount was calculated: the number of payments, such as `12 months`, and how the units were
    counted."""
    times = f"{amount(line.times)} {line.every}{'' if line.times == 1 else 's'}" if line.every != "once" else ""
    return "; ".join(filter(None, (times, *wording.texts(line.notes))))


def _sources(costs: Costs) -> list[str]:
    notes = [f"{row.name}: {row.source}{_speed(row)}." for row in costs.rows if row.source not in ("", "records")]
    notes += [f"{row.name}: {costs.unit} {wording.text(row.basis)}." for row in costs.rows if row.basis]
    notes += [
        cost_answer.several_servers(row.name, row.bill.offer.servers)
        for row in costs.rows
        if row.source == "records" and row.trials and row.bill and row.bill.offer.servers > 1
    ]
    if any(row.repeats for row in costs.rows):
        notes.append(cost_answer.geometric_means())
    if any(row.target and row.target.best for row in costs.rows):
        notes.append(cost_answer.rate_is_an_input())
    if any(row.runs == 1 and row.score and row.score.low < row.score.high < math.inf for row in costs.rows):
        notes.append(cost_answer.one_run())
    if any(row.estimate or (row.bill and row.bill.estimate) for row in costs.rows):
        notes.append(cost_answer.estimates())
    return notes


def _speed(row: SystemCost) -> str:
    speed = row.bill.offer.core_speed if row.bill else None
    if speed is None:
        return ""
    return f" (one core is {ESTIMATE}{_span(speed, 3)}x as fast)"


def _row(row: SystemCost) -> dict[str, Any]:
    return {
        "system": row.name,
        "cores": row.cores,
        "score": _bounds(row.score),
        "score_value": row.score.centre if row.score else None,
        "score_per_core": _bounds(row.per_core),
        "score_per_1000": _bounds(row.per_thousand),
        "runs": row.runs,
        "trials": row.trials,
        "flagged": row.flagged,
        "estimate": row.estimate,
        "source": row.source,
        "basis": wording.text(row.basis) if row.basis else "",
        "caveats": wording.texts(row.caveats),
        "target": {"meets": row.target.meets, "why": wording.text(row.target.why)} if row.target else None,
        "bill": _bill_fields(row.bill) if row.bill else None,
    }


def _rank_fields(row: SystemCost, costs: Costs) -> dict[str, Any]:
    """Returns the fields about a system's work per price: its rank, and its ratio to the first system."""
    ratio = row.work_per_price_over(costs.rows[0])
    return {
        "rank_per_1000": next((one.rank for one in costs.ranking if one.row is row), None),
        "ratio_per_1000": _bounds(ratio),
        "ratio_per_1000_value": ratio.centre if ratio else None,
    }


def _bill_fields(bill: CostBreakdown) -> dict[str, Any]:
    lines = [{**msgspec.to_builtins(line), "note": "; ".join(wording.texts(line.notes))} for line in bill.lines]
    return {
        "currency": bill.currency,
        "total": str(bill.total),
        "years": str(bill.years) if bill.years else None,
        "estimate": bill.estimate,
        "lines": lines,
        "caveats": wording.texts(bill.caveats),
    }


def _bounds(range: CostRange | None) -> list[float] | None:
    """Returns both bounds of a score or ratio. Returns None if the score or ratio is unknown. Also returns None if only
    one trial was measured, because there are no bounds then."""
    return [range.low, range.high] if range and range.bounded else None


def _score(range: CostRange | None, estimate: bool) -> TableCell | Missing:
    """Returns the cell of a score, such as `1500 (1450 to 1560)` or `1500 (one trial)`. An estimate is shown by its
    bounds only."""
    if range is None:
        return ABSENT
    if range.low == range.high:
        return TableCell(range.low, "score", estimate=estimate)
    if range.centre is not None and not range.bounded:
        return TableCell(range.centre, "score", estimate=estimate, note="one trial")
    confidence = None if range.centre is None else CONFIDENCE
    return TableCell(range.centre, "score", range.low, range.high, confidence, estimate=estimate)


def _span(range: CostRange, digits: int) -> str:
    if digits == 0:
        low, high = f"{range.low:.0f}", f"{range.high:.0f}"
    else:
        low, high = number(range.low, digits), number(range.high, digits)
    return low if low == high else f"{low} to {high}"


def compared(
    selection: Sequence[str], target: str, systems: str, sheets: Sequence[str], currency: str, results: str
) -> Costs:
    """Computes costs from the options of `ironbench cost`. Raises an InputError that names the invalid option, file,
    system or price."""
    if not target and not systems:
        raise InputError("cost", "--target or --systems is missing", 'for example --target "p99 < 10ms at 5000 tps"')
    prices.currency(f"--currency {currency}", currency)
    wanted = targets.parse(target) if target else None
    declared = _declared(systems) if systems else None
    sheet = prices.with_sheets([Path(path) for path in sheets])
    store = Store(Path(results))
    rows = _rows(store, selection, declared)
    without: dict[str, Note] = {}
    if wanted:
        trials = _against(store, selection, declared, wanted)
    else:
        trials, along_curves = leaderboard.steady(store.records(leaderboard.peaks(rows)))
        without = {**leaderboard.without_peak(rows), **along_curves}
    records: dict[str, list[Record]] = {}
    for record in trials:
        records.setdefault(record.system.label, []).append(record)
    machines = {key: store.machine(key) for key in dict.fromkeys(map(machine_of, trials))}
    if declared and selection:
        declared = _in_order(declared, list(records))
    result = costs(declared, sheet, StoredTrials(records, machines, store), wanted, currency)
    notes = (note("system-without-score", system=label, why=why) for label, why in without.items())
    used = any(row.source == "records" for row in result.rows)
    derived = tuple(sorted(sentences(trials).values())) if used else ()
    return replace(result, notes=(*result.notes, *notes), derived=derived)


def _in_order(declared: SystemsFile, labels: Sequence[str]) -> SystemsFile:
    """Sorts the systems of the systems file in the order in which the user named their records. Systems without named
    records come last. The first system is the baseline."""
    place = {label: number for number, label in enumerate(labels)}
    return replace(declared, offers=tuple(sorted(declared.offers, key=lambda one: place.get(one.records, len(place)))))


def _declared(path: str) -> SystemsFile:
    return offers.read(
        text_of(Path(path), f"--systems {path}", "give the path of a systems file (a TOML file that contains prices)"),
        path,
    )


def _against(
    store: Store, selection: Sequence[str], declared: SystemsFile | None, target: targets.Target
) -> list[Record]:
    """Reads the selected records that were measured at the target's rate or a higher rate, because they can decide
    whether a system meets the target. Also reads at most one usable and one unusable other record for each load of each
    system, for notes on what else was measured."""
    labels = _labels(declared)
    telling: dict[tuple[str, bool], str] = {}

    def wanted(row: Listed) -> bool:
        if row.purpose in AUXILIARY or (labels and not selection and row.label not in labels):
            return False
        if row.rate is not None and row.rate >= target.rate:
            return True
        return telling.setdefault((row.alike, Status(row.status).comparable), row.id) == row.id

    return store.matching(selection, wanted)


def _rows(store: Store, selection: Sequence[str], declared: SystemsFile | None) -> list[Listed]:
    """Returns the index rows of the selected records. Without a selection, returns those of the records that the
    systems file names."""
    labels = _labels(declared)
    return [row for row in store.rows(selection) if selection or row.label in labels]


def _labels(declared: SystemsFile | None) -> set[str]:
    return {offer.records for offer in declared.offers} if declared else set()
