"""The answer at the top of a report: the decision, a point for each comparison, the bottleneck, then caveats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ironbench.model.finding import NOT_AT_BOTH_ENDS, Conclusion
from ironbench.model.note import Note
from ironbench.report import screen, wording
from ironbench.report.bottleneck import ceiling_sentence, limit_sentence, unexplained
from ironbench.report.cell import CONFIDENCE
from ironbench.report.findings import (
    against_trend_sentences,
    change,
    change_bounds,
    confidence_interval,
    metric_words,
    minimum_effect,
    than,
)
from ironbench.report.headline import headline
from ironbench.report.numbers import confidence, percent, quantity, unit_of
from ironbench.report.page import Answer, AnswerPoint
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.stats.scalability import Fit
from ironbench.study.differences import NOT_SET, Difference
from ironbench.study.growth import ALL, Growth, GrowthCourse, GrowthStep
from ironbench.study.study import Effect, Study
from ironbench.study.subjects import failed_percent, failed_share
from ironbench.study.versions import LACKS, BesideVersion
from ironbench.words import counted, listed, some

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
    """Lists comparisons of the factor in the question first, and decided ones first; counts those beyond the limit."""
    if not any(effect.finding.blocks for effect in study.effects):
        return [AnswerPoint(_nothing(study))]
    measured = {(one.finding.cell, one.finding.baseline): one for one in study.ceilings}
    ranked = sorted(study.effects, key=partial(_rank, study))
    still_open = study.ended(Conclusion.CANNOT_TELL)
    points: list[AnswerPoint] = []
    if len(still_open) == len(ranked) > 1:
        points.append(
            AnswerPoint(f"INCONCLUSIVE: all {len(ranked)} comparisons of {metric_words(study.metric)} are undecided.")
        )
    named = len(ranked) if len(ranked) <= _NAMED + 1 else _NAMED
    # A comparison with a zero-latency device already says what it would take to decide.
    open_yet = [one for one in still_open if (one.finding.cell, one.finding.baseline) not in measured]
    last_open = -1
    for effect in ranked[:named]:
        last_open = len(points) if effect in open_yet else last_open
        ceiling = measured.get((effect.finding.cell, effect.finding.baseline))
        if ceiling:
            points.append(AnswerPoint(ceiling_sentence(ceiling, effect.contrast.where), doubt=unexplained(ceiling)))
        else:
            points.append(comparison(effect, bool(points)))
    if more := ranked[named:]:
        points.append(AnswerPoint(_counted(more)))
    if advice := _advice_for(open_yet):
        open_point = points[last_open]
        points[last_open] = replace(open_point, doubt=" ".join(filter(None, (open_point.doubt, advice))))
    return points


def _rank(study: Study, effect: Effect) -> tuple[int, int, float]:
    """Sort key: a change of only the factor in the question, then one of this and other factors, then the rest. Among
    these, decided before equivalent before inconclusive, and decided ones by their confidence interval's distance from
    1. Across factors the size does not count: a large effect of something else would look like the answer."""
    lab, finding, distance = study.lab, effect.finding, 0.0
    assert lab is not None
    asked = lab.method.answer or (lab.factors[0].name if lab.factors else "")
    levels, others = (lab.setup(name).cell.levels for name in (finding.cell, finding.baseline))
    varied = {factor for factor in levels if levels[factor] != others.get(factor)}
    about = 0 if varied == {asked} else 1 if asked in varied else 2
    rank = _RANK[finding.conclusion]
    if rank == 0:
        distance = min(abs(math.log(end)) if 0 < end < math.inf else 0.0 for end in (finding.low, finding.high))
    return about, rank, -distance


def comparison(effect: Effect, metric_named: bool = False) -> AnswerPoint:
    """States the outcome of one comparison, its size and confidence interval, and which data a side can lose."""
    point = _comparison(effect, metric_named)
    return replace(
        point, doubt=" ".join(filter(None, (point.doubt, *(f"{text}." for text in wording.texts(effect.losses)))))
    )


def _comparison(effect: Effect, metric_named: bool) -> AnswerPoint:
    finding, contrast = effect.finding, effect.contrast
    cell, baseline = (wording.terms.configuration(side) for side in (contrast.cell, contrast.baseline))
    opening, metric = wording.terms.opening(contrast.cell), metric_words(finding.metric)
    at = f"With {wording.terms.configuration(contrast.where)}, " if contrast.where.values else ""
    opening = f"{at}{cell}" if at else opening
    sure = f"{confidence_interval(finding)}, {counted(finding.blocks, 'paired repeat')}"
    though = f", though {wording.text(finding.changed)}" if finding.changed else ""
    size, than_or_as = change(finding.ratio, finding.metric), than(finding.ratio)
    if finding.conclusion in (Conclusion.FASTER, Conclusion.SLOWER):
        if finding.metric == "throughput" and not cell[:1].isdigit():
            return AnswerPoint(f"{opening} is {size} {than_or_as} {baseline} ({sure}){though}.")
        subject = f"{at}{metric}" if at else f"{metric[:1].upper()}{metric[1:]}"
        better = "" if unit_of(finding.metric) in ("s", "1/s") else f", which is {_BETTER[finding.conclusion]}"
        size = f"{change(finding.ratio, '')} with {cell} {than_or_as} with {baseline}"
        return AnswerPoint(f"{subject} is {size} ({sure}){better}{though}.")
    seen = f"{'' if metric_named else f'{metric} '}{change(finding.ratio, '')} with {cell}, {sure}"
    if finding.conclusion is Conclusion.EQUIVALENT:
        alike = f"{opening} and {baseline} are equivalent within {percent(finding.margin)}"
        return AnswerPoint(f"{alike} ({seen}){though}.")
    if not finding.blocks:
        return AnswerPoint(f"{opening} and {baseline} cannot be compared: no block has both.")
    sides = wording.terms.comparison(contrast)
    if finding.blocks < LEAST_BLOCKS:
        some = f"{finding.blocks} of {LEAST_BLOCKS}"
        text = f"INCONCLUSIVE: {sides}: too few blocks for a verdict ({some}); so far {seen}."
        return AnswerPoint(text, doubt=_why_open(effect))
    if finding.changed:
        text = f"INCONCLUSIVE: {sides}: {wording.text(finding.changed)}; on average {seen}."
        return AnswerPoint(text, doubt=_why_open(effect))
    return AnswerPoint(f"INCONCLUSIVE: {sides}: {seen}.", doubt=_why_open(effect))


_BETTER = {Conclusion.FASTER: "better", Conclusion.SLOWER: "worse"}


def _why_open(effect: Effect) -> str:
    finding = effect.finding
    if finding.changed and (not finding.barred or finding.barred.code == NOT_AT_BOTH_ENDS):
        return ""
    if finding.barred:
        return f"{wording.text(finding.barred)}."
    if finding.detectable is None:
        return ""
    return f"Minimum detectable effect of these blocks: {minimum_effect(finding.detectable)}."


def with_advice(effect: Effect) -> AnswerPoint:
    """Describes a single comparison, with the advice that would settle it."""
    point, advice = comparison(effect), effect.finding.advice
    return replace(point, doubt=" ".join(filter(None, (point.doubt, _advice(advice) if advice else ""))))


def _counted(effects: Sequence[Effect]) -> str:
    """Counts the comparisons that are not listed: `14 more comparisons: 10 faster, 4 inconclusive.`"""
    ends = [effect.finding.conclusion.word for effect in effects]
    tally = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
    return f"{counted(len(effects), 'more comparison')}: {tally}; see the findings below."


def _advice_for(open_ones: Sequence[Effect]) -> str:
    """Returns the advice for the comparison that needs most blocks; with less it would stay undecided."""
    known = [(one.advice, one.detectable) for effect in open_ones if (one := effect.finding).advice]
    if not known:
        return ""
    most, _ = max(known, key=lambda one: math.inf if one[1] is None else one[1])
    alike = len({advice for advice, _ in known}) == 1
    return _advice(most) if alike else _advice(most, "To decide all of them")


def _advice(advice: Note | None, purpose: str = "To decide") -> str:
    return f"{purpose}: {wording.text(advice)}." if advice else ""


def versions(study: Study) -> list[AnswerPoint]:
    """Names what differs besides the version, before any other result: readers attribute the whole ratio to the
    version."""
    chosen = _by_words((one, one.rows) for one in study.beside_version)
    defaults = _by_words((one, one.defaults) for one in study.beside_version)
    return [
        *(
            AnswerPoint(f"The version is not the only difference ({pairs}): {words}. These may explain the result.")
            for words, pairs in chosen
        ),
        *(AnswerPoint(f"Defaults changed with the version ({pairs}): {words}.") for words, pairs in defaults),
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
    texts = [f"This is round {len(study.earlier) + 1}; its verdicts use only its own blocks."]
    for one in study.earlier:
        ends = [effect.finding.conclusion.word for effect in one.effects]
        ends += [f"claim {judged.verdict}" for judged in one.claims]
        tally = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
        texts.append(f"Round {one.number} ended with {tally or 'no verdict'}.")
    return texts


def courses(study: Study) -> list[AnswerPoint]:
    """Says how far throughput grew with clients, for curves with enough points."""
    by_curve = [list(_course(curve, curve.course, curve.fit)) for curve in study.growths if curve.course and curve.fit]
    return [AnswerPoint(text) for sentences in by_curve[:_CURVES] for text in sentences]


def _course(curve: Growth, course: GrowthCourse, fit: Fit) -> Iterator[str]:
    """States the measured growth, without the fitted curve: its peak has no confidence interval."""
    means = {row.clients: quantity(row.measured, "1/s") for row in fit.residuals}
    enough, step = counted(course.enough, "client"), course.first
    text = "throughput " if curve.name == ALL else f"With {wording.terms.configuration(curve.name)}, throughput "
    if step is None:
        text += f"shows no certain growth beyond {enough} ({means[course.enough]})"
    else:
        start = f"{means[step.fewer]} at {counted(step.fewer, 'client')}"
        text += f"grows from {start} to {means[step.most]} at {step.most}: {_with_interval(step)}"
    text += f"; beyond that, it {_beyond(course.beyond)}" if course.beyond else ", the highest number measured"
    yield f"{text[:1].upper()}{text[1:]}."


def _beyond(step: GrowthStep) -> str:
    """Compares the most clients with the fewest clients that no larger number surely beats."""
    verb = "falls" if step.surely_falls else "grows" if step.surely_grows else "shows no certain change"
    if not (step.surely_falls or step.surely_grows) and (step.high < 1 or step.low > 1):
        verb += " once corrected for the number of steps"
    return f"{verb}: at {step.most} it is {_with_interval(step)} {than(step.ratio)} at {step.fewer}"


def _with_interval(step: GrowthStep) -> str:
    return f"{change(step.ratio, '')} ({_interval(step)})"


def _interval(step: GrowthStep) -> str:
    return f"{confidence(CONFIDENCE)} CI {change_bounds(step.low, step.high, step.ratio)}"


def growth(study: Study) -> list[str]:
    """For curves with too few blocks for `courses`, says where throughput stops growing, within the measured range."""
    return [
        f"{_with_more_clients(curve)}: {_peak(curve, curve.fit)}."
        for curve in study.growths[:_CURVES]
        if curve.fit and not curve.course
    ]


def _with_more_clients(curve: Growth) -> str:
    return "With more clients" if curve.name == ALL else f"{wording.terms.opening(curve.name)} with more clients"


def _peak(curve: Growth, fit: Fit) -> str:
    if curve.grows:
        return f"throughput still grows at {fit.last:g}, the highest number measured"
    if fit.falls:
        return f"throughput does not grow beyond {counted(fit.first, 'client')}"
    if fit.peak_is_beyond:
        return f"no peak up to {fit.last:g}, the highest number measured{_step(curve.last_step)}"
    peak = quantity(fit.curve.peak_throughput, "1/s")
    return f"the fitted curve peaks near {fit.curve.peak_clients:.0f} clients at {peak}"


def _step(step: GrowthStep | None) -> str:
    if step is None or not math.isfinite(step.high):
        return ""
    verb = "falls" if step.high < 1 else "grows" if step.low > 1 else "shows no certain change"
    return f"; from {step.fewer} to {step.most} clients throughput {verb}: {_with_interval(step)}"


def limit(study: Study) -> str:
    """Names the baseline's bottleneck; empty if its backends were not observed."""
    spent = next((cell.time for cell in study.cells if cell.name == study.baseline and cell.time), None)
    if spent is None:
        return ""
    words = limit_sentence(spent, study.ceilings)
    return f"With {wording.terms.configuration(study.configuration(study.baseline))}, {words[:1].lower()}{words[1:]}"


def failures(study: Study) -> str:
    """Names configurations with failed transactions and their share: throughput counts successful transactions only."""
    lost = [(cell.configuration, share) for cell in study.cells if (share := failed_share(cell.usable))]
    if not lost:
        return ""
    units, shares = (
        study.counts[1],
        ", ".join(f"{failed_percent(share)} with {wording.terms.configuration(cell)}" for cell, share in lost),
    )
    return f"Failed {units}: {shares}. Throughput counts only those that succeeded."


def disturbed(study: Study) -> list[str]:
    """Names disturbances of the machine that may explain part of a difference."""
    return wording.sentences(one.note for one in study.disturbances)


def noise(study: Study) -> str:
    """States by how much two runs of the same configuration differ on this machine."""
    if study.noise is None:
        return ""
    floor = percent(study.noise.floor)
    return (
        f"Run-to-run variation of this machine: two runs of the same configuration differ by less than {floor} in "
        f"{confidence(CONFIDENCE)} of cases ({study.noise.source})."
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
    return f"{len(study.claims)} claims of the lab file: {words}.{why}"


def _nothing(study: Study) -> str:
    usable = sum(len(cell.usable) for cell in study.cells)
    if not usable:
        return "No answer yet: no trial is usable."
    if not (study.lab and study.lab.comparisons):
        return "This lab describes its configurations without comparing them."
    if study.missing:
        over = f"{study.trials} of {counted(study.trials + study.missing, 'planned trial')}"
        return f"No answer yet: no block is complete ({over} finished)."
    return "No answer: no block has a usable trial of both configurations."
