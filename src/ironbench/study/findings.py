"""Computes all findings of a lab: declared comparisons with verdicts, and other metrics without verdicts."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from ironbench.catalogue import base_name, metrics
from ironbench.model.finding import REPEAT_FAILED, Conclusion, Finding, Noise
from ironbench.model.lab import Configuration, Lab, Method
from ironbench.model.note import Note, note
from ironbench.model.record import CAN_LOSE_DATA, EMULATION_LIMIT, Record, Status, machine_of
from ironbench.model.sample import lacking, resolution, sampled, unresolved
from ironbench.model.system import Setup
from ironbench.records.progress import Place, by_place, first_usable, given_up_on, missing
from ironbench.records.work import work_of_noise
from ironbench.stats.multiplicity import LEAST_BLOCKS, LEVEL, corrected, divisors
from ironbench.stats.ratio import paired
from ironbench.study.comparability import flagged, not_paired, too_few_workers, work_apart
from ironbench.study.differences import declared_alike, differing, fact_text, facts_of, flattened, system_facts
from ironbench.study.factors import named_sides
from ironbench.study.interim import InterimAnalysis, analysis_after
from ironbench.study.rate import NEGLIGIBLE_SHARE, Ratios, is_share, without_ratio
from ironbench.study.subjects import counted_in, needs_mark
from ironbench.study.verdict import Holm, drift_warnings, judged, of_blocks, ratio_change

Attempts = Mapping[tuple[str, int], Sequence[Record]]
"""For each pair (configuration, block), its records in the analysed stages, in order of attempts."""


OF_AN_OPEN_LOOP = ("service_time", "due", "not_started", "unfinished", "longest_wait", "lateness")
"""Metrics that are left out in a closed loop. There, they equal response times or follow from the number of clients."""


def findings(
    records: Sequence[Record],
    lab: Lab,
    stage: int,
    others: Sequence[str] | None = None,
) -> tuple[Finding, ...]:
    """Computes all findings after stage number `stage`. The declared comparisons of the lab and its claims come first
    and have verdicts. Other metrics follow, without verdicts.

    `records`: all records of the lab. A block is dropped if either configuration has no comparable trial in it. The
    finding lists dropped blocks. `others`: additional metrics to compare. If it is None, these are all metrics that
    have a better direction and are not about a part, such as a script.
    """
    place = analysis_after(lab.method, stage)
    seen = by_place(record for record in records if place.first_stage <= record.stage <= place.last_stage)
    left = {(trial.cell.name, trial.block) for trial in missing(lab.trials, records)}
    family = declared(lab)
    compared = partial(_compared, lab, seen, _facts_of_pairs(lab, seen, [one[:2] for one in family]))
    results = _judged([compared(*one, awaited=_awaited(one[:2], lab, place, left)) for one in family], lab, stage)
    for cell, baseline in _measurable_comparisons(lab):
        for metric in others if others is not None else _directed(cell, baseline, seen):
            if (cell, baseline, metric) not in family and (one := compared(cell, baseline, metric)).ratios:
                results.append(judged(one, lab.method, stage))
    # Response times at percentages of the baseline's peak throughput also have no verdicts, so Holm's correction does
    # not count them.
    for cell, baseline in lab.rated_comparisons if others is None else ():
        for metric in PERCENTILES:
            if (one := compared(cell, baseline, metric)).ratios:
                results.append(judged(one, method_of(lab, cell), stage))
    order = {pair: place for place, pair in enumerate(lab.comparisons)}
    return tuple(sorted(results, key=lambda one: (not one.decides, order.get((one.cell, one.baseline), len(order)))))


PERCENTILES = tuple(f"response_time_{part}_s" for part in ("p50", "p90", "p95", "p99", "p999"))
"""Percentiles that are compared between fixed-rate configurations."""


def _facts_of_pairs(
    lab: Lab, seen: Attempts, pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns, for each pair of configurations, those fields of its findings that do not depend on the metric."""
    settled: dict[str, list[Record]] = {}
    for (name, _), attempts in seen.items():
        settled.setdefault(name, []).append(first_usable(attempts) or attempts[-1])
    every = list(dict.fromkeys((*pairs, *_measurable_comparisons(lab), *lab.rated_comparisons)))
    facts = {}
    for pair, (*names, where) in named_sides(lab, every).items():
        trials = [settled.get(name, []) for name in pair]
        sides = tuple(
            replace(side, emulated=needs_mark(side.name, own)) for side, own in zip(names, trials, strict=True)
        )
        lost = [
            dict.fromkeys(one for record in own for one in record.warnings if one.code == CAN_LOSE_DATA)
            for own in trials
        ]
        slow = [
            (side, sum(any(one.code == EMULATION_LIMIT for one in record.warnings) for record in used), len(used))
            for side, own in zip(sides, trials, strict=True)
            for used in [[record for record in own if record.status.comparable]]
        ]
        facts[pair] = {
            "sides": sides,
            "where": where,
            "losses": tuple(one for mine, others in (lost, lost[::-1]) for one in mine if one not in others),
            "slow_emulation": tuple(one for one in slow if one[1]),
        }
    return facts


def declared(lab: Lab) -> tuple[tuple[str, str, str], ...]:
    """Lists everything for which the lab has verdicts as (configuration, baseline, metric): first the lab's
    comparisons, then the pairs in its claims. If the lab also compares a claim's pair, the lab's direction is used,
    because a gate treats the baseline as the old version.
    """
    compared = (*_measurable_comparisons(lab), *lab.rated_comparisons)
    family = [(cell, baseline, lab.method.metric) for cell, baseline in _measurable_comparisons(lab)]
    there = {setup.cell.name for setup in lab.all_setups if not setup.skipped}
    for claim in lab.claims:
        for one, other in zip(claim.cells, claim.cells[1:], strict=False):
            turned = (other, one) in compared and (one, other) not in compared
            ways = ((one, other, claim.metric), (other, one, claim.metric))
            if not any(way in family for way in ways) and there.issuperset((one, other)):
                family.append(ways[turned])
    return tuple(family)


def compare_cells(lab: Lab, records: Sequence[Record], a: str, b: str, stage: int) -> tuple[Finding, ...]:
    """Returns the findings that compare configuration `b` with baseline `a`. The lab may declare the pair in the
    opposite direction. The lab's metric is first. If no comparison or claim of the lab declares the pair, the user
    chose it after seeing the data, so its findings have no verdict.
    """
    pair, other = (b, a), (a, b)
    # If a comparison is inverted, its interval is inverted and its p value stays the same. Holm's correction is
    # therefore unchanged.
    turned = tuple(pair if one == other else one for one in lab.comparisons)
    claims = tuple(
        replace(claim, cells=pair if {one, two} == {a, b} else (one, two))
        for claim in lab.claims
        for one, two in itertools.pairwise(claim.cells)
    )
    family = replace(lab, comparisons=turned, claims=claims)
    results = [one for one in findings(records, family, stage) if (one.cell, one.baseline) == pair]
    if pair not in turned:
        claimed = {one.metric for one in results}
        undeclared = replace(lab, comparisons=(pair,), claims=())
        results += [
            replace(one, decides=False, conclusion=Conclusion.CANNOT_TELL, p=None, advice=None)
            for one in findings(records, undeclared, stage)
            if one.metric not in claimed
        ]
    return tuple(sorted(results, key=lambda finding: finding.metric != lab.method.metric))


def _measurable_comparisons(lab: Lab) -> tuple[tuple[str, str], ...]:
    missing = {setup.cell.name for setup in lab.setups if setup.skipped}
    return tuple(pair for pair in lab.comparisons if not missing & set(pair))


def _judged(family: Sequence[Finding], lab: Lab, stage: int) -> list[Finding]:
    """Adds the verdicts, with Holm's correction over all comparisons. The correction is separate for tests of a
    difference and tests of equivalence, and divides the alpha that this interim analysis may spend."""
    methods = [method_of(lab, one.cell) for one in family]
    places = [analysis_after(method, stage) for method in methods]
    ratios = [[ratio for _, ratio in one.ratios] for one in family]
    results = [
        paired(own, resolution(one.metric)) if len(own) >= LEAST_BLOCKS else None
        for own, one in zip(ratios, family, strict=True)
    ]
    differ = [result.p_equal() if result else 1.0 for result in results]
    alike = [result.p_apart(lab.method.margin) if result else 1.0 for result in results]
    by_differ = divisors(differ, lambda one, divisor: places[one].level(LEVEL / divisor, 2))
    by_alike = divisors(alike, lambda one, divisor: places[one].level(LEVEL / divisor, 1))
    corrections = map(Holm, by_differ, by_alike, corrected(differ))
    return [
        judged(one, method, stage, holm, ratio_change(own))
        for one, method, own, holm in zip(family, methods, ratios, corrections, strict=True)
    ]


def method_of(lab: Lab, cell: str) -> Method:
    """Returns the lab's method. A fixed-rate configuration has no trials in some stages, and therefore no interim
    analysis after them. These stages are left out.
    """
    if all(setup.cell.name != cell for setup in lab.rated):
        return lab.method
    blocks = Counter(trial.stage for trial in lab.trials if trial.cell.name == cell)
    own = tuple(replace(stage, blocks=blocks[stage.number]) for stage in lab.method.stages if blocks[stage.number])
    return replace(lab.method, stages=own or lab.method.stages, dropped=())


def _awaited(pair: Sequence[str], lab: Lab, place: InterimAnalysis, left: Collection[Place]) -> tuple[int, int]:
    """Counts the planned blocks of a pair. Returns how many of them still have a trial to be measured, and how many
    there are. `left`: the trials that are still to be measured."""
    due = {
        (trial.cell.name, trial.block)
        for trial in lab.trials
        if place.first_stage <= trial.stage <= place.last_stage and trial.cell.name in pair
    }
    return len({block for one, block in due if (one, block) in left}), len({block for _, block in due})


def _compared(
    lab: Lab,
    seen: Attempts,
    facts: Mapping[tuple[str, str], Mapping[str, Any]],
    cell: str,
    baseline: str,
    metric: str,
    awaited: tuple[int, int] | None = None,
) -> Finding:
    """Pairs the trials of both configurations block by block. A block in which either configuration has no comparable
    trial is dropped. `facts`: the result of `_facts_of_pairs`. `awaited`: for a comparison that gets a verdict, the
    result of `_awaited`."""
    configurations = lab.configuration(cell), lab.configuration(baseline)
    pairs: list[tuple[int, float, float]] = []
    dropped: list[Note] = []
    sides: tuple[list[Record], list[Record]] = ([], [])
    lost, failed = [0, 0], 0
    for block in sorted({block for name, block in seen if name in (cell, baseline)}):
        trials: list[Record | None] = []
        why: list[Note] = []
        for side, name in enumerate((cell, baseline)):
            attempts = seen.get((name, block), ())
            trial, cause = _usable(configurations[side], attempts, metric)
            trials.append(trial)
            lost[side] += trial is None and any(one.status is not Status.CUT_SHORT for one in attempts)
            why += [cause] if cause else []
        a, b = trials
        failed += any(given_up_on(seen.get((name, block), ())) for name in (cell, baseline))
        if a is None or b is None:
            dropped.append(_dropped(block, *why))
            continue
        if apart := not_paired(a, b):
            dropped.append(_dropped(block, apart))
            continue
        pairs.append((block, a.metrics[metric], b.metrics[metric]))
        sides[0].append(a)
        sides[1].append(b)
    every, decides = (*sides[0], *sides[1]), awaited is not None
    warnings = [*flagged(every), *_unintended(metric, lab, *sides)]
    suspect = any(record.status is Status.SUSPECT for record in every)
    barred, advice, shares = note("suspect-cpu") if suspect and "cpu" in metric else None, None, None
    if awaited is not None:
        warnings += drift_warnings(metric, pairs, every)
        missing, planned = awaited
        if missing:  # the declared analysis is for complete stages, so missing blocks are noted
            warnings.append(note("blocks-missing", complete=len(pairs), planned=planned, missing=missing))
        unequal = lost[0] != lost[1]
        if failed and not barred and (unequal or len(pairs) < LEAST_BLOCKS):
            advice = note(REPEAT_FAILED, blocks=failed)
        if unequal and not barred:
            losing = tuple((one, blocks) for one, blocks in zip(configurations, lost, strict=True) if blocks)
            barred = note("unequal-losses", lost=losing)
    elif pairs:
        base, value = (statistics.median(pair[side] for pair in pairs) for side in (2, 1))
        shares = (base, value) if without_ratio(metric, base, value) else None
    return of_blocks(
        metric,
        cell,
        baseline,
        pairs,
        decides=decides,
        warnings=tuple(warnings),
        dropped=tuple(dropped),
        lost=(lost[0], lost[1]),
        barred=barred,
        advice=advice,
        shares=shares,
        **facts[cell, baseline],
    )


def _dropped(block: int, *why: Note) -> Note:
    return note("block-dropped", block=block + 1, why=why)


def _usable(cell: Configuration, attempts: Sequence[Record], metric: str) -> tuple[Record | None, Note | None]:
    """Returns the first comparable attempt that has the metric, or the reason why there is none."""
    if not attempts:
        return None, note("cell-not-measured", cell=cell)
    trial = first_usable(attempts)
    if trial is None:
        last = attempts[-1]
        return None, note("cell-lost", cell=cell, status=last.status.value, causes=last.causes)
    units = counted_in([trial])[1]
    if unresolved(trial, metric):
        return None, note("cell-unresolved", cell=cell, units=units, metric=metric)
    if not sampled(trial, metric):
        return None, note("cell-of-too-few", cell=cell, units=units, needs=lacking([trial], [metric]))
    value = trial.metrics.get(metric)
    if value is None or not 0 < value < float("inf"):
        return None, note("cell-without-ratio", cell=cell, metric=metric, value=value)
    return trial, None


def _directed(cell: str, baseline: str, seen: Attempts) -> list[str]:
    """Lists the metrics that both configurations have and that have a better direction, in the order of the built-in
    list of metrics. Metrics of parts are not listed.

    Metrics whose ratio has no meaning are left out. These are the throughput of an open loop, service times of a closed
    loop (they equal response times), and fractions close to zero in both configurations.
    """
    sides = [[r for (of, _), tries in seen.items() if of == name for r in tries] for name in (cell, baseline)]
    there = [{metric for record in side for metric in record.metrics} for side in sides]
    trials = [record for side in sides for record in side]
    closed = all(record.cell.load.rate is None for record in trials)
    ratios = Ratios(*sides)
    return [
        name
        for name, metric in metrics().items()
        if name in there[0] & there[1]
        and metric.better != "neither"
        and not (closed and name.startswith(OF_AN_OPEN_LOOP))
        and not ratios.lacking(name)
        and not (is_share(name) and _next_to_nothing(name, trials))
    ]


def _next_to_nothing(share: str, records: Sequence[Record]) -> bool:
    return max((record.metrics.get(share, 0.0) for record in records), default=0.0) < NEGLIGIBLE_SHARE


def highest_floor(known: Sequence[Noise], metric: str, records: Sequence[Record]) -> Noise | None:
    """Returns the highest run-to-run variation of a metric that was measured on the records' machines with their work.
    Returns None if none was measured. Variation that was measured for other work does not count, because variation
    depends on the work as much as on the machine.
    """
    measured = [one for one in known if one.metric == metric]
    if not measured:
        return None
    # If the server's machine is unknown, the variation is unknown, because two unknown machines may be different.
    here = {(key, work_of_noise(one.choice), one.method) for one in records if (key := machine_of(one))}
    return max(
        (one for one in measured if (one.machine, one.work, one.method) in here),
        key=lambda one: one.floor,
        default=None,
    )


_TIMES = ("response_time", "service_time")
# A pilot may choose a different warm-up for each configuration. This does not matter, because the warm-up is not
# measured.
_INCIDENTAL = ("load.warmup",)


def _unintended(metric: str, lab: Lab, a: Sequence[Record], b: Sequence[Record]) -> tuple[Note, ...]:
    """Returns notes on undeclared differences. `a` and `b`: compared trials of a configuration and its baseline."""
    if not a or not b:
        return ()
    notes = [*work_apart(a, b)]
    if len({record.machine for record in (*a, *b)}) > 1 and a[0].system.commands == b[0].system.commands:
        notes.append(note("machine-changed"))
    notes += too_few_workers((*a, *b))
    meant = _varied_facts(lab, a[0].cell.name, b[0].cell.name)
    sides = [_facts_of_all(a), _facts_of_all(b)]
    for name in differing(sides):
        if name not in meant and not name.startswith(_INCIDENTAL):
            left, right = (fact_text(flat, name) for flat in sides)
            notes.append(note("varied-unintended", fact=name, cell=left, baseline=right))
    if base_name(metric).startswith(_TIMES) and _closed_at_equal_clients(a[0], b[0]):
        notes.append(note("not-same-load", rated=bool(lab.rated)))
    if base_name(metric).startswith(_TIMES):
        notes += _searched(lab, a[0], b[0])
    return tuple(notes)


def _searched(lab: Lab, a: Record, b: Record) -> list[Note]:
    """Returns a note if a search found different loads for the two configurations."""
    searches = [setup.search for setup in lab.setups if setup.search and setup.cell.name == a.cell.name]
    of = searches[0].of if searches else "clients"
    loads = [getattr(record.cell.load, of) for record in (a, b)]
    if not searches or loads[0] == loads[1]:
        return []
    return [note("loads-searched", of=of, cell=loads[0], baseline=loads[1])]


def _varied_facts(lab: Lab, cell: str, baseline: str) -> set[str]:
    """Returns the names of the facts that the lab varies between the two configurations."""
    declared = {setup.cell.name: setup for setup in lab.all_setups}
    if cell not in declared or baseline not in declared:
        return set()
    return set(differing([_facts(declared[cell]), _facts(declared[baseline])]))


def _facts(setup: Setup) -> dict[str, str]:
    return {**flattened("system", system_facts(setup.system)), **flattened("load", asdict(setup.cell.load))}


def _facts_of_all(records: Sequence[Record]) -> dict[str, str]:
    """Returns the facts of a configuration's trials. For a fact that varied between trials, lists all its values."""
    flats: list[dict[str, str]] = []
    before: Record | None = None
    for record in records:  # usually all records are equal, and flattening takes a hundred times as long as comparing
        if before is None or not declared_alike(record, before):
            flats.append(facts_of(record))
            before = record
    names = dict.fromkeys(name for flat in flats for name in flat)
    return {name: " or ".join(dict.fromkeys(fact_text(flat, name) for flat in flats)) for name in names}


def _closed_at_equal_clients(a: Record, b: Record) -> bool:
    load, other = a.cell.load, b.cell.load
    return load.rate is None and other.rate is None and load.clients == other.clients and a.system != b.system
