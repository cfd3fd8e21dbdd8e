"""Sentences about the results of runs, for the answer at the top of a report. The sentences contain no verdicts,
because the trials of runs are not interleaved in blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ironbench.model.described import LEADING
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.report import presentation
from ironbench.report.numbers import unit_of
from ironbench.report.wording.answers import run_answer
from ironbench.study.compare import MeanRatio, ratio_of
from ironbench.study.curve import Peak, lost_share
from ironbench.study.optimum import SearchResult
from ironbench.study.rate import Rate, recorded_pace
from ironbench.study.storage import MOST_BY_CHANCE, apart_by_chance, passes_of
from ironbench.study.study import Study, SubjectResults
from ironbench.study.subjects import counted_in, failed_share, leading
from ironbench.study.summarise import Summary, over_passes, overlap

NAMED = 3
"""Maximum number of systems that the headline names. If there are more, it names the first system and the one with the
highest peak."""


def headline(study: Study) -> list[tuple[str, str]]:
    """Returns the sentences of the answer, each with the name of the system that it is about. A sentence is left out if
    the data do not support it."""
    if (shown := presentation.of_study(study)) is not None:
        return [*_leading_ratios(study), *shown.headline(study)]
    unanswered = _unanswered(study)
    first, rates = [*_required(study), *unanswered.items()], _rate_sentences(study)
    with_peak = [part for part in study.parts if part.curve.peak and part.name not in unanswered]
    if not with_peak:
        return [*first, *rates] or [("", run_answer.nothing_usable())]
    named = with_peak
    if len(named) > NAMED:
        best = max(with_peak, key=lambda part: part.curve.peak.throughput.centre if part.curve.peak else 0.0)
        named = [with_peak[0], best] if best is not with_peak[0] else [best]
    apart = sorted(named[1:], key=_clearness)
    sentences = [_ratio_sentence(part) for part in apart]
    sentences += [(part.name, _peak_sentence(part)) for part in named]
    return [*first, *((name, text) for name, text in sentences if text), *rates]


def _required(study: Study) -> list[tuple[str, str]]:
    """States whether the requirements of runs (`--require`) are met. These sentences come first, because readers take
    the first sentence for the answer."""
    return [
        (one.name, run_answer.required(one.judged.claim.text, one.judged.verdict, one.judged.reasons))
        for one in study.requirements
    ]


def _unanswered(study: Study) -> dict[str, str]:
    """Maps the name of a system to the result of its search, if the search found no best number of clients. The trials
    of such a search do not show a peak."""
    found = {}
    for part in study.closed:
        result = _search_of([part], study)
        if result is not None and result.point is None:
            found[part.name] = run_answer.search_result(result.note)
    return found


def _search_of(parts: Sequence[SubjectResults], study: Study) -> SearchResult | None:
    """Returns the result of the last search of these systems. Returns None if there was no search."""
    series = {record.series for part in parts for record in part.subject.records}
    own = [one for one in study.run_searches if one.series in series]
    return max(own, key=lambda one: one.started_at).result if own else None


def _rate_sentences(study: Study) -> list[tuple[str, str]]:
    """States which target rates each system sustained. Only systems that ran in open loops get a sentence."""
    opened = [[part for part in parts if part.curve.rate] for parts in study.systems]
    texts = []
    for parts in [parts for parts in opened if parts][:NAMED]:
        if (result := _search_of(parts, study)) is not None:
            texts.append((_label(parts[0]), run_answer.search_result(result.note)))
            continue
        if answer := _recorded_search(parts):
            texts.append((_label(parts[0]), answer))
            continue
        if len(parts) <= NAMED:
            texts += [(part.name, _rate_sentence(part.curve.rate)) for part in parts if part.curve.rate]
            continue
        rates = sorted((part.curve.rate for part in parts if part.curve.rate), key=lambda one: one.rate)
        kept = [one.rate for one in rates if one.is_kept]
        texts.append((_label(parts[0]), run_answer.rates_sustained(kept, len(rates))))
    return texts


def _label(part: SubjectResults) -> str:
    system = part.subject.records[0].system
    return system.label or system.engine


def _recorded_search(parts: Sequence[SubjectResults]) -> str:
    """States the result of the last search for a rate, as recorded in the trials, and whether the confirmation trials
    sustained the rate. Returns an empty text if there was no search. This function is needed for records of earlier
    versions, which do not contain the search itself."""
    fresh = [(record, part.curve.rate) for part in parts for record in part.subject.records if record.search_result]
    if not fresh:
        return ""
    record, one = max(fresh, key=lambda pair: pair[0].started_at)
    return run_answer.recorded_search(record.search_result, one.rate, one.kept, len(one.trials)) if one else ""


def _rate_sentence(one: Rate) -> str:
    return run_answer.target_rate(
        one.rate,
        counted_in(one.trials)[1],
        one.clients,
        one.kept,
        len(one.trials),
        one.confirmed,
        on_curve=one.trials[0].cell.load.curve is not None,
        finished=one.finished.centre / one.rate if one.finished else None,
        p99_s=_p99_s(one.metrics),
    )


def _p99_s(metrics: Mapping[str, Summary]) -> float | None:
    known = metrics.get("response_time_p99_s")
    return known.centre if known else None


def _clearness(part: SubjectResults) -> tuple[bool, float]:
    """Returns a sort key. Systems that were shown to differ from the first system come before all other systems. Within
    both groups, the largest differences come first."""
    standing = part.standing
    if standing is None or standing.ratio is None:
        return True, 0.0
    return not standing.shown, -abs(math.log(standing.ratio))


def _leading_ratios(study: Study) -> list[tuple[str, str]]:
    """Compares the main metric of each system with that of the first system. Used for workloads whose result is not a
    throughput. A system is left out if its range overlaps with the range of the first system."""
    first = study.parts[0]
    ranked = []
    for part in study.parts[1:]:
        if (pair := _apart(first, part)) is None:
            continue
        name, means = pair
        interleaved = bool({one.series for one in first.subject.records} & {one.series for one in part.subject.records})
        text = run_answer.leading_ratio(name, means.ratio, first.name, means.centres, _passes(part), interleaved)
        ranked.append((-abs(math.log(means.ratio)), part.name, text))
    return [(name, text) for _, name, text in sorted(ranked)]


def _apart(first: SubjectResults, part: SubjectResults) -> tuple[str, MeanRatio] | None:
    """Returns the main metric and its ratio to the first system. Returns None unless both ranges are known and do not
    overlap. Also returns None if there are so few passes that the ranges are often apart by chance."""
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
    means = ratio_of(mains[0].trials, mains[1].trials, name)
    return (name, means) if means else None


def _passes(part: SubjectResults) -> bool:
    """Returns whether at least one trial of the system has several passes."""
    return any(passes_of(record) > 1 for record in part.subject.records)


def _peak_sentence(part: SubjectResults) -> str:
    peak = part.curve.peak
    if peak is None:
        return ""
    scored, last = of_score(part.subject.records[0], peak), peak.trials[-1]
    # If the search had limits, the sentence names them. More clients may reach a higher throughput but exceed a limit.
    limits = last.limits if last.purpose == Purpose.CONFIRMATION else ()
    limited = [(limit, peak.metrics[limit.metric].centre) for limit in limits if limit.metric in peak.metrics]
    return run_answer.peak(
        peak.throughput,
        counted_in(peak.trials)[1],
        peak.clients,
        peak.basis,
        single_maximum=len(part.curve.points) > 1 and peak.alike[0] == peak.alike[1],
        on_curve=peak.trials[0].cell.load.curve is not None,
        recorded_pace=recorded_pace(peak.trials[0]),
        score=run_answer.score(scored, peak.metrics[scored]) if scored else "",
        plateau=peak.alike if peak.alike[0] != peak.alike[1] else None,
        limits=[limit.text for limit in limits],
        limited=[(limit.metric, value) for limit, value in limited],
        exceeded=any(value > limit.most for limit, value in limited),
        lost=lost_share(peak),
        p99_s=_p99_s(peak.metrics),
        failed=failed_share(peak.trials),
    )


RATES = ("1/s", "1/min")
"""Units of rates. Only a score with one of these units is shown instead of the throughput."""


def of_score(record: Record, peak: Peak) -> str:
    """Returns the metric that is the workload's score, if the score is the rate of only some transactions. Returns an
    empty text if the score is the throughput of all transactions, or if it is no rate."""
    first = leading(record)[0]
    return "" if first in LEADING or first not in peak.metrics or unit_of(first) not in RATES else first


def _ratio_sentence(part: SubjectResults) -> tuple[str, str]:
    """Returns the name of the system, and the rest of the sentence about it. If the trials show no difference, the name
    is empty, and the second text is the whole sentence."""
    standing = part.standing
    if standing is None or standing.ratio is None or standing.means is None:
        return part.name, ""
    if standing.shown:
        return part.name, run_answer.ratio_to_first(standing.means, part.reference)
    return "", run_answer.no_difference(standing.difference, part.name, standing.means, part.reference)
