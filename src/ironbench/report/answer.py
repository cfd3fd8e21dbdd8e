"""What a report begins with: the strongest decision, a point for each comparison, the limit, then the doubts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ironbench.analyse.ceiling import Ceiling
from ironbench.analyse.growth import ALL, Course, Growth, Step
from ironbench.analyse.study import Effect, Study
from ironbench.model.finding import Conclusion
from ironbench.report import trend
from ironbench.report.findings import at_least, bounds, interval, metric_words, ratio
from ironbench.report.headline import headline
from ironbench.report.numbers import confidence, percent, quantity
from ironbench.report.section import Answer, Point
from ironbench.stats.scalability import Fit
from ironbench.words import THIN, counted

_NAMED = 6
"""Comparisons that are told one by one; the table of findings has all."""
_CURVES = 3
_RANK = {Conclusion.FASTER: 0, Conclusion.SLOWER: 0, Conclusion.EQUIVALENT: 1, Conclusion.CANNOT_TELL: 2}


def answer(study: Study) -> Answer:
    """In words that the data support and no stronger ones: of a lab its verdicts, of runs how systems stand to the
    first, the clearest first, and what each came to."""
    if study.lab is None:
        said = [Point(text, name) for name, text in headline(study)]
        return Answer(said[0], tuple(said[1:]))
    found = [*courses(study), *comparisons(study)]
    found += [Point(text) for text in (*trend.sentences(study.against), *growth(study), claims(study)) if text]
    doubts = (*rounds(study), *disturbed(study), noise(study))
    return Answer(found[0], tuple(found[1:]), limit(study), tuple(text for text in doubts if text))


def comparisons(study: Study) -> list[Point]:
    """The decided ones first, the surest of them at the head; of many the rest is counted."""
    if not any(effect.finding.blocks for effect in study.effects):
        return [Point(_nothing(study))]
    measured = {(one.finding.cell, one.finding.baseline): one for one in study.ceilings}
    ranked = sorted(study.effects, key=_strength)
    still_open = study.ended(Conclusion.CANNOT_TELL)
    found: list[Point] = []
    told = ""
    if len(still_open) == len(ranked) > 1:
        found.append(Point(f"None of the {len(ranked)} comparisons by {metric_words(study.metric)} can be decided."))
    named = len(ranked) if len(ranked) <= _NAMED + 1 else _NAMED
    for effect in ranked[:named]:
        ceiling = measured.get((effect.finding.cell, effect.finding.baseline))
        found.append(_of_ceiling(ceiling) if ceiling else comparison(effect, told, named=bool(found)))
        told = confidence(effect.finding.confidence)
    if more := ranked[named:]:
        found.append(Point(_counted(more)))
    # What making a part free brought says by itself what it would take to tell.
    open_yet = [one for one in still_open if (one.finding.cell, one.finding.baseline) not in measured]
    if advice := _advice_for(open_yet):
        found[-1] = Point(found[-1].text, doubt=" ".join(filter(None, (found[-1].doubt, advice))))
    return found


def _strength(effect: Effect) -> tuple[int, float]:
    """Decided before equivalent before open; of the decided the one whose interval keeps farthest from 1."""
    finding = effect.finding
    rank = _RANK[finding.conclusion]
    if rank == 0:
        return rank, -min(abs(math.log(end)) if 0 < end < math.inf else 0.0 for end in (finding.low, finding.high))
    return rank, 0.0


def _of_ceiling(one: Ceiling) -> Point:
    return Point(one.sentence.removesuffix(one.bound), doubt=one.bound.strip())


def comparison(effect: Effect, told: str = "", named: bool = False) -> Point:
    """One comparison: how it ended, by how much, how sure. `told`: the confidence that was named last; `named`: whether
    the metric was."""
    finding, contrast = effect.finding, effect.contrast
    where = f" at {contrast.where}" if contrast.where else ""
    times = ratio(finding.ratio) if named else f"{ratio(finding.ratio)} its {metric_words(finding.metric)}"
    sure = confidence(finding.confidence)
    level = "" if sure == told else f"{sure} interval, "
    doubt = f"{interval(finding)}, {level}{counted(finding.blocks, 'block')}"
    if finding.conclusion in (Conclusion.FASTER, Conclusion.SLOWER):
        words = finding.conclusion.value
        return Point(f"{contrast.cell} is {words} than {contrast.baseline}{where}: {times} ({doubt}).")
    sides = f"{contrast.cell} and {contrast.baseline}{where}"
    if finding.conclusion is Conclusion.EQUIVALENT:
        return Point(f"{sides} are equivalent within {percent(finding.margin)}: {times} ({doubt}).")
    if not finding.blocks:
        return Point(f"{sides} cannot be compared: no block has both.")
    return Point(f"{sides} cannot be told apart: {times} ({doubt}).", doubt=_why_open(effect))


def _why_open(effect: Effect) -> str:
    finding = effect.finding
    if finding.barred:
        return f"{finding.barred.rstrip('.')}."
    if finding.detectable is None:
        return ""
    return f"These blocks would show only differences of {at_least(finding.detectable)}."


def sentence(effect: Effect) -> str:
    """One comparison alone, with what it would take to tell."""
    point, advice = comparison(effect), effect.finding.advice
    return " ".join(filter(None, (point.text, point.doubt, _advice(advice) if advice else "")))


def _counted(effects: Sequence[Effect]) -> str:
    """`14 more comparisons: 10 faster, 4 cannot tell.`"""
    ends = [effect.finding.conclusion.value for effect in effects]
    tally = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
    return f"{counted(len(effects), 'more comparison')}: {tally}; the findings below name each."


def _advice_for(open_ones: Sequence[Effect]) -> str:
    """The advice of the comparison that needs most, since less would leave it open."""
    found = [effect.finding for effect in open_ones if effect.finding.advice]
    if not found:
        return ""
    most = max(found, key=lambda one: math.inf if one.detectable is None else one.detectable)
    alike = len({one.advice for one in found}) == 1
    return _advice(most.advice) if alike else _advice(most.advice, "To tell all of them")


def _advice(text: str, purpose: str = "To tell") -> str:
    return f"{purpose}: {text.rstrip('.')}."


def rounds(study: Study) -> list[str]:
    """That this is another round, and how those before it ended."""
    if not study.earlier:
        return []
    said = [f"This is round {len(study.earlier) + 1}, judged on its own blocks alone."]
    for one in study.earlier:
        ends = [effect.finding.conclusion.value for effect in one.effects]
        ends += [f"claim {judged.outcome}" for judged in one.claims]
        tally = ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))
        said.append(f"Round {one.number} ended with {tally or 'nothing to tell'}.")
    return said


def courses(study: Study) -> list[Point]:
    """How far throughput grew with clients, where enough numbers of them were measured for a curve: who varies clients
    so finely asks for that first."""
    found = [list(_course(curve, curve.course, curve.fit)) for curve in study.growths if curve.course and curve.fit]
    return [Point(text) for sentences in found[:_CURVES] for text in sentences]


def _course(curve: Growth, course: Course, fit: Fit) -> Iterator[str]:
    """What was measured, then the fitted curve's peak where it surely lies within that."""
    means = {row.clients: quantity(row.measured, "1/s") for row in fit.residuals}
    enough, step = counted(course.enough, "client"), course.first
    said = "throughput " if curve.name == ALL else f"At {curve.name}, throughput "
    if step is None:
        said += f"does not surely grow beyond {enough} ({means[course.enough]})"
    else:
        start = f"{means[step.fewer]} at {counted(step.fewer, 'client')}"
        said += f"grows from {start} to {means[step.most]} at {step.most}, {_with_interval(step)}"
    said += f", and from there {_beyond(course.beyond)}" if course.beyond else ", the most that were measured"
    yield f"{said[:1].upper()}{said[1:]}."
    if course.beyond and fit.peak_is_certain and fit.peak_clients.value >= fit.first:
        yield f"By the fitted curve {_peak(curve, fit)}."


def _beyond(step: Step) -> str:
    """From the fewest clients that no larger number surely beat to the most."""
    verb = "falls" if step.surely_falls else "grows" if step.surely_grows else "neither grows nor falls for sure"
    if not (step.surely_falls or step.surely_grows) and (step.high < 1 or step.low > 1):
        verb += ", as one of many steps"
    return f"{verb}: at {step.most} it is {_with_interval(step)} what it is at {step.fewer}"


def _with_interval(step: Step) -> str:
    return f"{ratio(step.ratio)} ({bounds(step.low, step.high)}, 95{THIN}% interval)"


def growth(study: Study) -> list[str]:
    """Where throughput stops growing with clients, of curves with too few blocks to say how far it grew; never further
    than was measured."""
    return [
        f"{'With more clients' if curve.name == ALL else f'{curve.name} with more clients'}: {_peak(curve, curve.fit)}."
        for curve in study.growths[:_CURVES]
        if curve.fit and not curve.course
    ]


def _peak(curve: Growth, fit: Fit) -> str:
    if curve.grows:
        return f"throughput still grows at {fit.last:g}, the most that were measured"
    if fit.peak_clients.value < fit.first:
        return f"no growth was found from {counted(fit.first, 'client')} on"
    if fit.peak_is_beyond:
        return f"no peak was found up to {fit.last:g}, the most that were measured{_step(curve.last_step)}"
    peak = f"throughput peaks at {quantity(fit.peak_throughput.value, '1/s')} near {fit.peak_clients.value:.0f} clients"
    if not fit.peak_is_certain:
        return f"{peak}, perhaps beyond the {fit.last:g} that were measured"
    return f"{peak} ({fit.peak_clients.low:.0f} to {fit.peak_clients.high:.0f})"


def _step(step: Step | None) -> str:
    if step is None or not math.isfinite(step.high):
        return ""
    verb = "falls" if step.high < 1 else "grows" if step.low > 1 else "neither grows nor falls for sure"
    return (
        f"; from {step.fewer} to {step.most} clients throughput {verb} "
        f"({ratio(step.ratio)}, {bounds(step.low, step.high)}, 95{THIN}% interval)"
    )


def limit(study: Study) -> str:
    """What holds the baseline back, as far as its backends were observed."""
    spent = next((cell.time for cell in study.cells if cell.name == study.baseline and cell.time), None)
    if spent is None:
        return ""
    said = spent.limit.sentence.replace("Cannot tell what limits:", "What limits cannot be told:")
    return f"At {study.baseline}, {said[:1].lower()}{said[1:]}"


def disturbed(study: Study) -> list[str]:
    """What may have made a difference besides the cells."""
    return [one.sentence for one in study.disturbances]


def noise(study: Study) -> str:
    """What the machine shows between two runs of the same cell."""
    if study.noise is None:
        return ""
    floor = percent(study.noise.floor)
    return f"The noise floor of this machine is {floor}: smaller differences may be its own ({study.noise.source})."


def claims(study: Study) -> str:
    """How the author's expectations fared, in numbers, and why some could not be decided."""
    if not study.claims:
        return ""
    tally = [
        (outcome, [judged for judged in study.claims if judged.outcome == outcome])
        for outcome in ("confirmed", "refuted", "undecided")
    ]
    why = f" {study.too_little_time}" if study.too_little_time else ""
    if len(study.claims) == 1:
        return f"The claim of the lab file is {study.claims[0].outcome}.{why}"
    words = ", ".join(f"{len(found)} {outcome}" for outcome, found in tally if found)
    return f"Of the {len(study.claims)} claims of the lab file: {words}.{why}"


def _nothing(study: Study) -> str:
    usable = sum(len(cell.usable) for cell in study.cells)
    if not usable:
        return "No trial ended well enough to be compared: there is no answer yet."
    if not (study.lab and study.lab.comparisons):
        return "This lab compares no cells: it describes them."
    return "No block holds both sides of a comparison: there is no answer yet."
