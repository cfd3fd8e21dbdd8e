"""The answer at the top of a report: the strongest decision, a point for each comparison, the limit, then caveats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ironbench.model.finding import NOT_AT_BOTH_ENDS, Conclusion
from ironbench.model.note import Note
from ironbench.report import screen, wording
from ironbench.report.bottleneck import ceiling_sentence, limit_sentence, unexplained
from ironbench.report.findings import (
    NO_INTERVAL,
    against_trend_sentences,
    at_least,
    bounds,
    interval,
    metric_words,
    ratio,
)
from ironbench.report.headline import headline
from ironbench.report.numbers import confidence, percent, quantity
from ironbench.report.page import Answer, AnswerPoint
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.stats.scalability import Fit
from ironbench.study.differences import NOT_SET, Difference
from ironbench.study.growth import ALL, Growth, GrowthCourse, GrowthStep
from ironbench.study.study import Effect, Study
from ironbench.study.subjects import failed_percent, failed_share
from ironbench.study.versions import LACKS, BesideVersion
from ironbench.words import THIN, counted, listed, some

_NAMED = 6
"""Most comparisons listed one by one; the table of findings has all."""
_CURVES = 3
_RANK = {Conclusion.FASTER: 0, Conclusion.SLOWER: 0, Conclusion.EQUIVALENT: 1, Conclusion.CANNOT_TELL: 2}


def answer(study: Study) -> Answer:
    """States a lab's verdicts, or how the systems of runs compare with the first, and no more than the data support."""
    if study.lab is None:
        points = [AnswerPoint(text, name) for name, text in headline(study)]
        return Answer(points[0], tuple(points[1:]))
    points = [*courses(study), *comparisons(study)]
    if study.screen is not None:
        points = screen.points(study, study.screen, points)
    points[1:1] = versions(study)
    points += [
        AnswerPoint(text) for text in (*against_trend_sentences(study.against), *growth(study), claims(study)) if text
    ]
    doubts = (failures(study), *rounds(study), *disturbed(study), noise(study))
    return Answer(points[0], tuple(points[1:]), limit(study), tuple(text for text in doubts if text))


def comparisons(study: Study) -> list[AnswerPoint]:
    """Lists decided comparisons first, the surest at the head; counts those beyond the limit."""
    if not any(effect.finding.blocks for effect in study.effects):
        return [AnswerPoint(_nothing(study))]
    measured = {(one.finding.cell, one.finding.baseline): one for one in study.ceilings}
    ranked = sorted(study.effects, key=_strength)
    still_open = study.ended(Conclusion.CANNOT_TELL)
    points: list[AnswerPoint] = []
    confidence_named = ""
    if len(still_open) == len(ranked) > 1:
        points.append(
            AnswerPoint(f"None of the {len(ranked)} comparisons by {metric_words(study.metric)} can be decided.")
        )
    named = len(ranked) if len(ranked) <= _NAMED + 1 else _NAMED
    for effect in ranked[:named]:
        ceiling = measured.get((effect.finding.cell, effect.finding.baseline))
        if ceiling:
            points.append(AnswerPoint(ceiling_sentence(ceiling, effect.contrast.where), doubt=unexplained(ceiling)))
        else:
            points.append(comparison(effect, confidence_named, bool(points)))
        confidence_named = confidence(effect.finding.confidence)
    if more := ranked[named:]:
        points.append(AnswerPoint(_counted(more)))
    # A comparison with a zero-latency device already says what it would take to decide.
    open_yet = [one for one in still_open if (one.finding.cell, one.finding.baseline) not in measured]
    if advice := _advice_for(open_yet):
        points[-1] = AnswerPoint(points[-1].text, doubt=" ".join(filter(None, (points[-1].doubt, advice))))
    return points


def _strength(effect: Effect) -> tuple[int, float]:
    """Sort key: decided before equivalent before inconclusive, and decided ones by their interval's distance from 1."""
    finding = effect.finding
    rank = _RANK[finding.conclusion]
    if rank == 0:
        return rank, -min(abs(math.log(end)) if 0 < end < math.inf else 0.0 for end in (finding.low, finding.high))
    return rank, 0.0


def comparison(effect: Effect, confidence_named: str = "", metric_named: bool = False) -> AnswerPoint:
    """Says how one comparison ended, by how much, how certain that is, and which data a side can lose.

    `confidence_named`: the confidence level that the reader saw last; another level is named.
    """
    point = _comparison(effect, confidence_named, metric_named)
    return replace(
        point, doubt=" ".join(filter(None, (point.doubt, *(f"{text}." for text in wording.texts(effect.losses)))))
    )


def _comparison(effect: Effect, confidence_named: str, metric_named: bool) -> AnswerPoint:
    finding, contrast = effect.finding, effect.contrast
    where = f" at {contrast.where}" if contrast.where else ""
    times, metric = ratio(finding.ratio), metric_words(finding.metric)
    sure = confidence(finding.confidence)
    known = interval(finding)
    level = "" if sure == confidence_named or known == NO_INTERVAL else f"{sure} interval, "
    doubt = f"{known}, {level}{counted(finding.blocks, 'block')}"
    though = f", though {wording.text(finding.changed)}" if finding.changed else ""
    if finding.conclusion in (Conclusion.FASTER, Conclusion.SLOWER):
        words, of = finding.conclusion.value, "" if metric_named else f" its {metric}"
        return AnswerPoint(
            f"{contrast.cell} is {words} than {contrast.baseline}{where}: {times}{of} ({doubt}){though}."
        )
    sides = f"{contrast.cell} and {contrast.baseline}{where}"
    whose = f"{contrast.cell} has {times} the {metric} of {contrast.baseline} ({doubt})"
    if metric_named:
        whose = f"{contrast.cell} over {contrast.baseline} {times} ({doubt})"
    if finding.conclusion is Conclusion.EQUIVALENT:
        return AnswerPoint(f"{sides} are equivalent within {percent(finding.margin)}: {whose}{though}.")
    if not finding.blocks:
        return AnswerPoint(f"{sides} cannot be compared: no block has both.")
    if finding.blocks < LEAST_BLOCKS:
        some = f"{finding.blocks} of {LEAST_BLOCKS}"
        text = f"{sides}: too few blocks for a verdict ({some}); so far {whose}."
        return AnswerPoint(text, doubt=_why_open(effect))
    if finding.changed:
        text = f"{sides} cannot be told apart: {wording.text(finding.changed)}; on average {whose}."
        return AnswerPoint(text, doubt=_why_open(effect))
    return AnswerPoint(f"{sides} cannot be told apart: {whose}.", doubt=_why_open(effect))


def _why_open(effect: Effect) -> str:
    finding = effect.finding
    if finding.changed and (not finding.barred or finding.barred.code == NOT_AT_BOTH_ENDS):
        return ""
    if finding.barred:
        return f"{wording.text(finding.barred)}."
    if finding.detectable is None:
        return ""
    return f"These blocks would show only differences of {at_least(finding.detectable)}."


def with_advice(effect: Effect) -> AnswerPoint:
    """Describes a single comparison, with the advice that would settle it."""
    point, advice = comparison(effect), effect.finding.advice
    return replace(point, doubt=" ".join(filter(None, (point.doubt, _advice(advice) if advice else ""))))


def _counted(effects: Sequence[Effect]) -> str:
    """Counts the comparisons that are not listed: `14 more comparisons: 10 faster, 4 cannot tell.`"""
    ends = [effect.finding.conclusion.value for effect in effects]
    tally = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
    return f"{counted(len(effects), 'more comparison')}: {tally}; the findings below name each."


def _advice_for(open_ones: Sequence[Effect]) -> str:
    """Returns the advice for the comparison that needs most blocks; with less it would stay undecided."""
    known = [(one.advice, one.detectable) for effect in open_ones if (one := effect.finding).advice]
    if not known:
        return ""
    most, _ = max(known, key=lambda one: math.inf if one[1] is None else one[1])
    alike = len({advice for advice, _ in known}) == 1
    return _advice(most) if alike else _advice(most, "To tell all of them")


def _advice(advice: Note | None, purpose: str = "To tell") -> str:
    return f"{purpose}: {wording.text(advice)}." if advice else ""


def versions(study: Study) -> list[AnswerPoint]:
    """Names what differs besides the version, before any other result: readers attribute the whole ratio to the
    version."""
    chosen = _by_words((one, one.rows) for one in study.beside_version)
    defaults = _by_words((one, one.defaults) for one in study.beside_version)
    return [
        *(
            AnswerPoint(f"Not only the version differs ({pairs}): {words}. The difference may come from these.")
            for words, pairs in chosen
        ),
        *(AnswerPoint(f"Defaults that changed with the version ({pairs}): {words}.") for words, pairs in defaults),
    ]


def _by_words(differing: Iterable[tuple[BesideVersion, Sequence[Difference]]]) -> list[tuple[str, str]]:
    """Groups comparisons by the other facts that differ in them."""
    texts: dict[str, list[str]] = {}
    for one, rows in differing:
        if rows:
            texts.setdefault(listed([_beside(row) for row in rows]), []).append(f"{one.baseline} → {one.cell}")
    return [(words, some(pairs)) for words, pairs in texts.items()]


def _beside(row: Difference) -> str:
    if row.name == LACKS:
        values = " → ".join("none known" if value == NOT_SET else value for value in row.values)
        return f"features left out of the build ({values})"
    return f"{row.name} ({' → '.join('absent' if value == NOT_SET else value for value in row.values)})"


def rounds(study: Study) -> list[str]:
    """Names the current round, and how the earlier rounds ended."""
    if not study.earlier:
        return []
    texts = [f"This is round {len(study.earlier) + 1}, judged on its own blocks alone."]
    for one in study.earlier:
        ends = [effect.finding.conclusion.value for effect in one.effects]
        ends += [f"claim {judged.verdict}" for judged in one.claims]
        tally = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
        texts.append(f"Round {one.number} ended with {tally or 'nothing to tell'}.")
    return texts


def courses(study: Study) -> list[AnswerPoint]:
    """Says how far throughput grew with clients, for curves with enough points."""
    by_curve = [list(_course(curve, curve.course, curve.fit)) for curve in study.growths if curve.course and curve.fit]
    return [AnswerPoint(text) for sentences in by_curve[:_CURVES] for text in sentences]


def _course(curve: Growth, course: GrowthCourse, fit: Fit) -> Iterator[str]:
    """States the measured growth, without the fitted curve: its peak has no confidence interval."""
    means = {row.clients: quantity(row.measured, "1/s") for row in fit.residuals}
    enough, step = counted(course.enough, "client"), course.first
    text = "throughput " if curve.name == ALL else f"At {curve.name}, throughput "
    if step is None:
        text += f"does not surely grow beyond {enough} ({means[course.enough]})"
    else:
        start = f"{means[step.fewer]} at {counted(step.fewer, 'client')}"
        text += f"grows from {start} to {means[step.most]} at {step.most}, {_with_interval(step)}"
    text += f", and from there {_beyond(course.beyond)}" if course.beyond else ", the most that were measured"
    yield f"{text[:1].upper()}{text[1:]}."


def _beyond(step: GrowthStep) -> str:
    """Compares the most clients with the fewest clients that no larger number surely beats."""
    verb = "falls" if step.surely_falls else "grows" if step.surely_grows else "neither grows nor falls for sure"
    if not (step.surely_falls or step.surely_grows) and (step.high < 1 or step.low > 1):
        verb += ", as one of many steps"
    return f"{verb}: at {step.most} it is {_with_interval(step)} what it is at {step.fewer}"


def _with_interval(step: GrowthStep) -> str:
    return f"{ratio(step.ratio)} ({bounds(step.low, step.high)}, 95{THIN}% interval)"


def growth(study: Study) -> list[str]:
    """Says where throughput stops growing, for curves with too few blocks for `courses`; never beyond what was
    measured."""
    return [
        f"{'With more clients' if curve.name == ALL else f'{curve.name} with more clients'}: {_peak(curve, curve.fit)}."
        for curve in study.growths[:_CURVES]
        if curve.fit and not curve.course
    ]


def _peak(curve: Growth, fit: Fit) -> str:
    if curve.grows:
        return f"throughput still grows at {fit.last:g}, the most that were measured"
    if fit.falls:
        return f"no growth was found from {counted(fit.first, 'client')} on"
    if fit.peak_is_beyond:
        return f"no peak was found up to {fit.last:g}, the most that were measured{_step(curve.last_step)}"
    peak = quantity(fit.curve.peak_throughput, "1/s")
    return f"throughput peaks near {fit.curve.peak_clients:.0f} clients with {peak}, by the fitted curve"


def _step(step: GrowthStep | None) -> str:
    if step is None or not math.isfinite(step.high):
        return ""
    verb = "falls" if step.high < 1 else "grows" if step.low > 1 else "neither grows nor falls for sure"
    return (
        f"; from {step.fewer} to {step.most} clients throughput {verb} "
        f"({ratio(step.ratio)}, {bounds(step.low, step.high)}, 95{THIN}% interval)"
    )


def limit(study: Study) -> str:
    """Names the baseline's bottleneck; empty if its backends were not observed."""
    spent = next((cell.time for cell in study.cells if cell.name == study.baseline and cell.time), None)
    if spent is None:
        return ""
    words = limit_sentence(spent, study.ceilings)
    return f"At {study.baseline}, {words[:1].lower()}{words[1:]}"


def failures(study: Study) -> str:
    """Names configurations with failed transactions and their share: throughput counts successful transactions only."""
    lost = [(cell.name, share) for cell in study.cells if (share := failed_share(cell.usable))]
    if not lost:
        return ""
    units, shares = study.counts[1], ", ".join(f"{failed_percent(share)} of {name}" for name, share in lost)
    return f"{units[0].upper()}{units[1:]} that failed: {shares}."


def disturbed(study: Study) -> list[str]:
    """Names disturbances of the machine that may explain part of a difference."""
    return wording.sentences(one.note for one in study.disturbances)


def noise(study: Study) -> str:
    """States by how much two runs of the same configuration differ on this machine."""
    if study.noise is None:
        return ""
    floor = percent(study.noise.floor)
    return (
        f"Run-to-run variation of this machine: two single runs of the same configuration differ by less than {floor} "
        f"in 95{THIN}% of cases ({study.noise.source})."
    )


def claims(study: Study) -> str:
    """Counts the verdicts on the author's claims, and says why some are undecided."""
    if not study.claims:
        return ""
    tally = [
        (verdict, [judged for judged in study.claims if judged.verdict == verdict])
        for verdict in ("confirmed", "refuted", "undecided")
    ]
    why = "".join(f" {words}" for words in wording.sentences(study.too_little_time))
    if len(study.claims) == 1:
        return f"The claim of the lab file is {study.claims[0].verdict}.{why}"
    words = ", ".join(f"{len(judgements)} {verdict}" for verdict, judgements in tally if judgements)
    return f"Of the {len(study.claims)} claims of the lab file: {words}.{why}"


def _nothing(study: Study) -> str:
    usable = sum(len(cell.usable) for cell in study.cells)
    if not usable:
        return "No trial ended well enough to be compared: there is no answer yet."
    if not (study.lab and study.lab.comparisons):
        return "This lab compares no cells: it describes them."
    if study.missing:
        over = f"{study.trials} of {counted(study.trials + study.missing, 'planned trial')}"
        return f"No block is complete: {over} over. There is no answer yet."
    return "No block has a usable trial of both sides: there is no answer."
