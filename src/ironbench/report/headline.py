"""Results of runs in sentences. Runs carry no verdict, because their trials were not run in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ironbench.model.described import LEADING
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.report import presentation, wording
from ironbench.report.numbers import measured, number, quantity, span, unit_of
from ironbench.report.wording.ratios import change, change_bounds, metric_words, than
from ironbench.study.compare import ratio as compared
from ironbench.study.curve import Peak, lost_share
from ironbench.study.rate import Rate, paced
from ironbench.study.storage import MOST_BY_CHANCE, apart_by_chance, passes_of
from ironbench.study.study import Study, SubjectResults
from ironbench.study.subjects import (
    counted_in,
    failed_percent,
    failed_share,
    leading,
)
from ironbench.study.summarise import Summary, over_passes, overlap
from ironbench.units import all_digits, rate
from ironbench.words import counted, in_percent, listed

NAMED = 3
"""Most systems that the headline names; of more it names the first and the one with the highest peak."""


def headline(study: Study) -> list[tuple[str, str]]:
    """Returns pairs of a system's name and a sentence about it, as far as the data support one."""
    if (shown := presentation.of_study(study)) is not None:
        return [*_leading_ratios(study), *shown.headline(study)]
    with_peak = [part for part in study.parts if part.curve.peak]
    kept = _rate_sentences(study)
    if not with_peak:
        return kept or [("", "No trial is usable.")]
    named = with_peak
    if len(named) > NAMED:
        best = max(with_peak, key=lambda part: part.curve.peak.throughput.centre if part.curve.peak else 0.0)
        named = [with_peak[0], best] if best is not with_peak[0] else [best]
    apart = sorted(named[1:], key=_clearness)
    sentences = [(part.name, _ratio_sentence(part)) for part in apart]
    sentences += [(part.name, _peak_sentence(part)) for part in named]
    return [*((name, text) for name, text in sentences if text), *kept]


def _rate_sentences(study: Study) -> list[tuple[str, str]]:
    """Says for each system driven in open loops which rates it sustained."""
    opened = [[part for part in parts if part.curve.rate] for parts in study.systems]
    texts = []
    for parts in [parts for parts in opened if parts][:NAMED]:
        if answer := _searched(parts):
            texts.append((_label(parts[0]), answer))
            continue
        if len(parts) <= NAMED:
            texts += [(part.name, _rate_sentence(part.curve.rate)) for part in parts if part.curve.rate]
            continue
        rates = sorted((part.curve.rate for part in parts if part.curve.rate), key=lambda one: one.rate)
        kept = [one.rate for one in rates if one.is_kept]
        text = f"sustained {len(kept)} of {len(rates)} target rates"
        text += f", up to {rate(max(kept))}" if kept else ""
        texts.append((_label(parts[0]), f"{text}."))
    return texts


def _label(part: SubjectResults) -> str:
    system = part.subject.records[0].system
    return system.label or system.engine


def _searched(parts: Sequence[SubjectResults]) -> str:
    """Returns the result of the last search for a rate, and whether its confirmation trials support it; empty without a
    search."""
    fresh = [(record, part.curve.rate) for part in parts for record in part.subject.records if record.search_result]
    if not fresh:
        return ""
    record, one = max(fresh, key=lambda pair: pair[0].started_at)
    if one is None:
        return ""
    asked, trials = rate(one.rate), counted(len(one.trials), "confirmation")
    judged = f"{trials} sustained {asked}" if one.is_kept else f"but {one.kept} of {trials} sustained {asked}"
    found = wording.texts([record.search_result] if record.search_result else [])
    return f"has this search result: {'; '.join([*found, judged])}."


def _rate_sentence(one: Rate) -> str:
    units = counted_in(one.trials)[1]
    curve = one.trials[0].cell.load.curve
    asked = all_digits(one.rate) if curve is None else number(one.rate)
    asked = f"{asked} {units} per second{' on average over the curve' if curve else ''}"
    asked += f" with {counted(one.clients, 'client')}"
    trials = wording.curve.tally(len(one.trials), one.confirmed)
    if one.is_kept:
        slow = one.metrics.get("response_time_p99_s")
        tail = f"; p99 response time {quantity(slow.centre, 's')}" if slow else ""
        return f"sustains {asked} ({trials}){tail}."
    finished = one.finished
    part = f"; {quantity(finished.centre / one.rate, 'share')} finished" if finished else ""
    if one.kept:
        return f"sustains {asked} in only {one.kept} of {trials}{part}."
    return f"does not sustain {asked} ({trials}){part}."


def _clearness(part: SubjectResults) -> tuple[bool, float]:
    """Sort key: systems whose repeats do not overlap with the first system's come first, the largest ratio at
    the head."""
    standing = part.standing
    if standing is None or standing.ratio is None:
        return True, 0.0
    return standing.overlap, -abs(math.log(standing.ratio))


def _leading_ratios(study: Study) -> list[tuple[str, str]]:
    """For work whose result is not a throughput: compares the leading figure with the first system's, for each system
    whose range does not overlap with the first system's."""
    first = study.parts[0]
    ranked = []
    for part in study.parts[1:]:
        if (pair := _apart(first, part)) is None:
            continue
        name, a, b = pair
        ratio = compared(a.centre, b.centre)
        if ratio is None:
            continue
        unit = unit_of(name)
        text = f"has {change(ratio, '')} {metric_words(name)} {than(ratio)} {first.name}: {measured(b, unit)} vs. "
        text += f"{measured(a, unit)}; the ranges of the {'passes' if _passes(part) else 'trials'} do not overlap"
        in_turns = {one.series for one in first.subject.records} & {one.series for one in part.subject.records}
        text += "." if in_turns else ", but the two runs were not interleaved: no verdict."
        ranked.append((-abs(math.log(ratio)), part.name, text))
    return [(name, text) for _, name, text in sorted(ranked)]


def _apart(first: SubjectResults, part: SubjectResults) -> tuple[str, Summary, Summary] | None:
    """Returns the leading metric and both summaries if both ranges are known and do not overlap; else None."""
    mains = first.curve.main, part.curve.main
    if mains[0] is None or mains[1] is None:
        return None
    of_first, of_part = mains[0].metrics, mains[1].metrics
    name = next((one for one in leading(part.subject.records[0]) if one in of_first and one in of_part), None)
    if name is None:
        return None
    a, b = over_passes(of_first, name), over_passes(of_part, name)
    if any(one.n == 1 and one.low == one.high for one in (a, b)) or overlap(a, b):
        return None
    if _passes(part) and apart_by_chance(mains[0].trials, mains[1].trials) > MOST_BY_CHANCE:
        return None
    return name, a, b


def _passes(part: SubjectResults) -> bool:
    """Whether its trials have several passes."""
    return any(passes_of(record) > 1 for record in part.subject.records)


def _peak_sentence(part: SubjectResults) -> str:
    peak = part.curve.peak
    if peak is None:
        return ""
    clients = counted(peak.clients, "client")
    many = len(part.curve.points) > 1
    verb = "peaks at" if many and peak.alike[0] == peak.alike[1] else "reaches"
    spread = f"range {span(peak.throughput, '1/s')}, " if peak.throughput.n > 1 else "n=1: no range, "
    slow = peak.metrics.get("response_time_p99_s")
    tail = f"; p99 response time {quantity(slow.centre, 's')}" if slow else ""
    units = counted_in(peak.trials)[1]
    rate = f"{number(peak.throughput.centre)} {units} per second"
    load = peak.trials[0].cell.load
    if load.curve is not None:
        rate, clients = f"{rate} on average over the curve", f"at most {clients}"
    verb, limits = _within_limits(peak, verb)
    if paced(peak.trials[0]):
        verb = "at the recorded pace runs"
    lost = f"; {failed_percent(share)} of the {units} failed" if (share := failed_share(peak.trials)) else ""
    score = _score(part, peak)
    level = _level(peak)
    less = lost_share(peak)
    fell = f"; {in_percent(less)} less than in the sweep" if less is not None else ""
    return f"{verb} {score}{rate} with {clients} ({spread}{wording.text(peak.basis)}){level}{limits}{fell}{tail}{lost}."


def _level(peak: Peak) -> str:
    """States the plateau of the curve, if it has one."""
    fewest, most = peak.alike
    return "" if fewest == most else f"; no difference shown between {fewest} and {most} clients"


def _within_limits(peak: Peak, verb: str) -> tuple[str, str]:
    """Returns the verb for a peak that a search found under limits, and the limited metrics there: more clients may do
    more, and break a limit."""
    last = peak.trials[-1]
    if not last.limits or last.purpose != Purpose.CONFIRMATION:
        return verb, ""
    limits = ", ".join(limit.text for limit in last.limits)
    known = [(limit, peak.metrics[limit.metric].centre) for limit in last.limits if limit.metric in peak.metrics]
    there = [f"{limit.metric} {quantity(value, unit_of(limit.metric))}" for limit, value in known]
    values = f"; {listed(there)}" if there else ""
    if any(value > limit.most for limit, value in known):
        return f"exceeds the limit {limits} in the confirmation trials; it reaches", values
    return f"within {limits} reaches", values


RATES = ("1/s", "1/min")
"""Units of scores that are rates."""


def of_score(record: Record, peak: Peak) -> str:
    """Returns the rate that the work is scored by, if it is not the throughput of all transactions; else empty."""
    first = leading(record)[0]
    return "" if first in LEADING or first not in peak.metrics or unit_of(first) not in RATES else first


def _score(part: SubjectResults, peak: Peak) -> str:
    """States the score of work that is scored by one kind of transaction; else empty."""
    if not (first := of_score(part.subject.records[0], peak)):
        return ""
    score = peak.metrics[first]
    spread = f" (range {span(score, unit_of(first))})" if score.n > 1 else ""
    return f"{number(score.centre)} {metric_words(first)}{spread} and "


def _ratio_sentence(part: SubjectResults) -> str:
    standing = part.standing
    if standing is None or standing.ratio is None:
        return ""
    text = f"is {change(standing.ratio)} {than(standing.ratio)} {part.reference}"
    if standing.ratio == 1:
        text = f"does not differ from {part.reference}"
    if standing.extremes is None or standing.extremes[0] == standing.extremes[1]:
        return f"{text} (one trial each, so the variation is unknown)."
    ranges = "overlap" if standing.overlap else "do not overlap"
    low_high = change_bounds(*standing.extremes, standing.ratio)
    return f"{text} (extremes of the repeats: {low_high}; ranges {ranges})."
