"""The answer at the top of a report: the decision, a point for each comparison, the bottleneck, and caveats."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from ironbench.model.finding import REPEAT_FAILED, Conclusion, Finding
from ironbench.report import screening, wording
from ironbench.report.finding_tables import against_trend_sentences
from ironbench.report.headline import headline
from ironbench.report.page import Answer, AnswerPoint
from ironbench.report.wording.answers import lab_answer
from ironbench.report.wording.answers.zero_latency import ceiling_sentence, limit_sentence, unexplained
from ironbench.report.wording.profile import change
from ironbench.study.ceiling import PartVerdict
from ironbench.study.study import Study
from ironbench.study.subjects import failed_share
from ironbench.words import listed

_NAMED = 6
"""Maximum number of comparisons that are listed one by one. The table of findings lists all comparisons."""
_CURVES = 3
_RANK = {Conclusion.FASTER: 0, Conclusion.SLOWER: 0, Conclusion.EQUIVALENT: 1, Conclusion.CANNOT_TELL: 2}


def answer(study: Study) -> Answer:
    """Returns the answer for a study. For a lab, the answer consists of verdicts. For runs, there are no verdicts, and
    the answer compares each system with the first one."""
    if study.lab is None:
        points = [AnswerPoint(text, name) for name, text in headline(study)]
        return Answer(points[0], tuple(points[1:]))
    points = [*courses(study), *comparisons(study)]
    if study.screen is not None:
        points = screening.points(study, study.screen, points)
    points[1:1] = [AnswerPoint(text) for text in lab_answer.beside_versions(study.beside_version, study.findings)]
    judged = " ".join(filter(None, (lab_answer.claims(study.claims), *wording.sentences(study.too_little_time))))
    points += [
        AnswerPoint(text) for text in (*against_trend_sentences(study.details.against), *growth(study), judged) if text
    ]
    disturbances = wording.sentences(one.note for one in study.disturbances)
    noise = lab_answer.noise(study.noise) if study.noise else ""
    too_slow = lab_answer.CALIBRATE if any(finding.too_slow for finding in study.findings) else ""
    caveats = (failures(study), too_slow, *lab_answer.rounds(study.earlier), *disturbances, noise)
    return Answer(points[0], tuple(points[1:]), limit(study), tuple(text for text in caveats if text))


def comparisons(study: Study) -> list[AnswerPoint]:
    """Returns a point for each comparison, in the order of `_rank`. If there are too many comparisons to list, the last
    point only states how many more there are."""
    if not any(finding.blocks for finding in study.findings):
        return [AnswerPoint(lab_answer.no_comparison(study), caveat=_repeat_failed(study.findings))]
    measured = {(one.finding.cell, one.finding.baseline): one for one in study.ceilings}
    bounds = {pair for pair, one in measured.items() if one.verdict is not PartVerdict.NOT_MEASURED}
    ranked = sorted(study.findings, key=partial(_rank, study, bounds))
    still_open = study.ended(Conclusion.CANNOT_TELL)
    points: list[AnswerPoint] = []
    named = len(ranked) if len(ranked) <= _NAMED + 1 else _NAMED
    # A comparison with a zero-latency device needs no separate advice. The sentence about it already says how to decide
    # it.
    open_yet = [one for one in still_open if _pair(one) not in measured]
    last_open = -1
    leading = sum(1 for _ in takewhile(lambda one: _pair(one) in bounds, ranked))
    summary_at = leading % len(ranked) if len(still_open) == len(ranked) > 1 else None
    for number, finding in enumerate(ranked[:named]):
        if number == summary_at:
            points.append(AnswerPoint(lab_answer.all_inconclusive(len(ranked), study.metric)))
        last_open = len(points) if finding in open_yet else last_open
        ceiling = measured.get(_pair(finding))
        if ceiling:
            points.append(AnswerPoint(ceiling_sentence(ceiling, finding.where), caveat=unexplained(ceiling)))
        else:
            points.append(comparison(finding, bool(points)))
    if more := ranked[named:]:
        points.append(AnswerPoint(lab_answer.further(more)))
    if advice := _advice_for(open_yet):
        open_point = points[last_open]
        points[last_open] = replace(open_point, caveat=" ".join(filter(None, (open_point.caveat, advice))))
    return points


def _pair(finding: Finding) -> tuple[str, str]:
    return finding.cell, finding.baseline


def _rank(study: Study, bounds: Collection[tuple[str, str]], finding: Finding) -> tuple[int, bool, int, float]:
    """Returns the sort key of a comparison.

    Comparisons are sorted into three groups. Comparisons in the first group change only the factor in the question.
    Comparisons in the second group also change other factors. Comparisons in the third group do not change the factor
    in the question.

    In each group, upper bounds come first, because no value of the factor can bring a larger gain. Decided comparisons
    are next, then equivalent ones, then inconclusive ones. Decided comparisons are sorted by the distance between 1 and
    the nearest end of their confidence interval. The largest distance comes first.

    The size of an effect never moves a comparison to another group. Otherwise, a large effect of a different factor
    could be at the top and look like the answer to the question.

    `bounds`: the comparisons that are upper bounds, as pairs of configuration and baseline.
    """
    lab, distance = study.lab, 0.0
    assert lab is not None
    asked = lab.method.answer or (lab.factors[0].name if lab.factors else "")
    levels, others = (lab.setup(name).cell.levels for name in (finding.cell, finding.baseline))
    varied = {factor for factor in levels if levels[factor] != others.get(factor)}
    about = 0 if varied == {asked} else 1 if asked in varied else 2
    rank = _RANK[finding.conclusion]
    if rank == 0:
        distance = min(abs(math.log(end)) if 0 < end < math.inf else 0.0 for end in (finding.low, finding.high))
    return about, _pair(finding) not in bounds, rank, -distance


def comparison(finding: Finding, metric_named: bool = False) -> AnswerPoint:
    """States the verdict of one comparison and the ratio with its confidence interval. Adds caveats, such as which data
    may be lost in a crash."""
    caveats = (
        lab_answer.why_inconclusive(finding),
        *(lab_answer.emulated_too_slow(*one) for one in finding.too_slow),
        *(f"{text}." for text in wording.texts(finding.losses)),
    )
    return AnswerPoint(lab_answer.comparison(finding, metric_named), caveat=" ".join(filter(None, caveats)))


def with_advice(finding: Finding) -> AnswerPoint:
    """Describes a single comparison. If the comparison is inconclusive, adds advice on how to decide it."""
    point, advice = comparison(finding), lab_answer.to_decide(finding.advice)
    return replace(point, caveat=" ".join(filter(None, (point.caveat, advice))))


def _advice_for(open_ones: Sequence[Finding]) -> str:
    """Returns advice on how to decide all these comparisons. The comparison that needs the most blocks determines the
    advice, because that many blocks are enough for all others. Blocks with failed trials get separate advice, because
    additional blocks do not replace them."""
    repeat = _repeat_failed(open_ones)
    known = [(one.advice, one.detectable) for one in open_ones if one.advice]
    known = [one for one in known if one[0].code != REPEAT_FAILED]
    if not known:
        return repeat
    most, _ = max(known, key=lambda one: math.inf if one[1] is None else one[1])
    alike = len({advice for advice, _ in known}) == 1
    purpose = "To decide the others" if repeat else "To decide" if alike else "To decide all of them"
    return " ".join(filter(None, (repeat, lab_answer.to_decide(most, purpose))))


def _repeat_failed(open_ones: Sequence[Finding]) -> str:
    """Returns the advice for the comparison with the most failed blocks. Returns an empty text if no trial failed."""
    known = [one.advice for one in open_ones if one.advice and one.advice.code == REPEAT_FAILED]
    return lab_answer.to_decide(max(known, key=lambda one: int(one.values["blocks"]))) if known else ""


def courses(study: Study) -> Iterator[AnswerPoint]:
    """States up to which number of clients throughput grew. Only curves with enough blocks for a `course` get a
    sentence."""
    known = [curve for curve in study.growths if curve.course and curve.fit]
    yield from (AnswerPoint(lab_answer.course(curve)) for curve in known[:_CURVES])


def growth(study: Study) -> Iterator[str]:
    """States at which number of clients throughput stops growing. Used for curves that `courses` leaves out. The fitted
    curve determines the number."""
    known = (curve for curve in study.growths[:_CURVES] if curve.fit and not curve.course)
    yield from map(lab_answer.growth, known)


def limit(study: Study) -> str:
    """Names the bottleneck of one configuration if its backends were observed. If both sides of a comparison were
    profiled, also names the function with the largest significant difference."""
    return " ".join(filter(None, (_bottleneck(study), _function(study))))


def _bottleneck(study: Study) -> str:
    """Names the baseline's bottleneck. If only one other configuration is compared with the baseline and is slower,
    names the bottleneck of this configuration instead, because it explains the difference."""
    slower = [one.cell for one in study.findings if one.conclusion is Conclusion.SLOWER]
    named = slower[0] if slower and len(study.cells) == 2 else study.baseline
    spent = next((cell.time for cell in study.cells if cell.name == named and cell.time), None)
    if spent is None:
        return ""
    words = limit_sentence(spent, study.ceilings)
    configuration = wording.terms.configuration(study.configuration(named), listed)
    return f"With {configuration}, {words[:1].lower()}{words[1:]}"


def _function(study: Study) -> str:
    known = [(one.profile, one.profile.main) for one in study.explanations if one.profile and one.profile.main]
    if not known:
        return ""
    compared, _ = max(known, key=lambda pair: pair[1].at_least_s)
    return change(compared)


def failures(study: Study) -> str:
    """Names each configuration that had failed transactions, and the fraction of its transactions that failed."""
    lost = [(cell.configuration, share) for cell in study.cells if (share := failed_share(cell.usable))]
    return lab_answer.failures(study.counts[1], lost) if lost else ""
