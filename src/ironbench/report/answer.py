"""The answer to a lab's question in one paragraph, in words that its data support and no stronger ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ironbench.analyse.contrast import Contrast
from ironbench.analyse.growth import ALL, Course, Growth, Step
from ironbench.analyse.labstudy import Effect, LabStudy
from ironbench.analyse.scalability import Fit
from ironbench.model.finding import Conclusion
from ironbench.report import trend
from ironbench.report.findings import at_least, bounds, interval, metric_words, ratio
from ironbench.report.numbers import confidence, percent, quantity
from ironbench.words import THIN, counted

_EACH = 3
"""More comparisons than this are told by how they ended, not one by one."""
_NAMED = 4
"""Of one ending, at most so many are named."""


def answer(study: LabStudy) -> str:
    """Sentences in reading order: what was found, how sure, what the machine's own noise is, what was expected."""
    found = (*courses(study), *findings(study), *rounds(study), *trend.sentences(study.against))
    said = (*found, *growth(study), limits(study), *disturbed(study), noise(study), claims(study))
    return " ".join(words for words in said if words)


def findings(study: LabStudy) -> list[str]:
    """What was found, comparison by comparison or ending by ending."""
    if not any(effect.finding.blocks for effect in study.effects):
        return [_nothing(study)]
    if len(study.effects) > _EACH or len(study.ended(Conclusion.CANNOT_TELL)) > 1:
        return [*_endings(study), *(one.sentence for one in study.ceilings)]
    measured = {(one.finding.cell, one.finding.baseline): one.sentence for one in study.ceilings}
    return [
        measured.get((effect.finding.cell, effect.finding.baseline)) or sentence(effect) for effect in study.effects
    ]


def rounds(study: LabStudy) -> list[str]:
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


def courses(study: LabStudy) -> list[str]:
    """How far throughput grew with clients, where enough numbers of them were measured for a curve: who varies clients
    so finely asks for that first."""
    return [
        " ".join(_course(curve, curve.course, curve.fit))
        for curve in study.growths[:_EACH]
        if curve.course and curve.fit
    ]


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


def growth(study: LabStudy) -> list[str]:
    """Where throughput stops growing with clients, of curves with too few blocks to say how far it grew; never further
    than was measured."""
    return [
        f"{'With more clients' if curve.name == ALL else f'{curve.name} with more clients'}: {_peak(curve, curve.fit)}."
        for curve in study.growths[:_EACH]
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


def limits(study: LabStudy) -> str:
    """What holds the baseline back, as far as its backends were observed."""
    spent = next((cell.time for cell in study.cells if cell.name == study.lab.baseline and cell.time), None)
    if spent is None:
        return ""
    said = spent.limit.sentence.replace("Cannot tell what limits:", "What limits cannot be told:")
    return f"At {study.lab.baseline}, {said[:1].lower()}{said[1:]}"


def disturbed(study: LabStudy) -> list[str]:
    """What may have made a difference besides the cells."""
    return [one.sentence for one in study.disturbances]


def noise(study: LabStudy) -> str:
    """What the machine shows between two runs of the same cell."""
    if study.noise is None:
        return ""
    floor = percent(study.noise.floor)
    return f"The noise floor of this machine is {floor}: smaller differences may be its own ({study.noise.source})."


def claims(study: LabStudy) -> str:
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


def sentence(effect: Effect) -> str:
    """One comparison: how it ended, by how much, how sure."""
    finding, contrast = effect.finding, effect.contrast
    where = f" at {contrast.where}" if contrast.where else ""
    times = f"{ratio(finding.ratio)} its {metric_words(finding.metric)}"
    blocks = "1 block" if finding.blocks == 1 else f"{finding.blocks} blocks"
    doubt = f"{interval(finding)}, {confidence(finding.confidence)} interval, {blocks}"
    if finding.conclusion in (Conclusion.FASTER, Conclusion.SLOWER):
        words = finding.conclusion.value
        return f"{contrast.cell} is {words} than {contrast.baseline}{where}: {times} ({doubt})."
    if finding.conclusion is Conclusion.EQUIVALENT:
        margin = percent(finding.margin)
        return f"{contrast.cell} and {contrast.baseline} are equivalent within {margin}{where}: {times} ({doubt})."
    text = (
        f"Whether {contrast.cell} is faster or slower than {contrast.baseline}{where} cannot be told from these trials"
    )
    text += f": {times} ({doubt})" if finding.blocks else ": no block has both"
    if finding.barred:
        text += f". {finding.barred}"
    elif finding.detectable is not None:
        text += f", and they would show only differences of {at_least(finding.detectable)}"
    return f"{text}." + _advice(finding.advice)


def _endings(study: LabStudy) -> list[str]:
    baselines = {effect.finding.baseline for effect in study.effects}
    words = {effect.contrast.baseline for effect in study.effects}
    by = f"by their {metric_words(study.metric)}"
    if len(baselines) == 1:
        baseline = (words if len(words) == 1 else baselines).pop()
        said = [f"{len(study.effects)} cells were compared with {baseline} {by}."]
    else:
        baseline = words.pop() if len(words) == 1 else ""
        said = [f"{len(study.effects)} pairs of cells were compared {by}."]
    for conclusion in Conclusion:
        ended = study.ended(conclusion)
        if ended:
            said.append(_ending(conclusion, ended, len(study.effects), baseline))
    return said


def _ending(conclusion: Conclusion, ended: Sequence[Effect], everyone: int, baseline: str) -> str:
    """`baseline`: empty where comparisons have different ones; then each is named with its own."""
    how_many = "All" if len(ended) == everyone else str(len(ended))
    if conclusion is Conclusion.CANNOT_TELL and len(ended) == everyone:
        how_many = "None"
    verb = "is" if len(ended) == 1 else "are"
    names = _names(ended, full=not baseline)
    other = baseline or ("its baseline" if len(ended) == 1 else "their baseline")
    if conclusion is Conclusion.EQUIVALENT:
        within = percent(ended[0].finding.margin)
        return f"{how_many} {verb} equivalent to {other} within {within}: {names}."
    if conclusion is Conclusion.CANNOT_TELL:
        known = [effect.finding.detectable for effect in ended if effect.finding.detectable is not None]
        least = f" (these blocks would show only differences of {at_least(max(known))})" if known else ""
        can = "can" if how_many == "None" else "cannot"
        return f"{how_many} {can} be told from {other}{least}: {names}.{_advice_for(ended)}"
    return f"{how_many} {verb} {conclusion.value} than {other}: {names}."


def _advice_for(open_ones: Sequence[Effect]) -> str:
    """The advice of the comparison that needs most, since less would leave it open."""
    found = [effect.finding for effect in open_ones if effect.finding.advice]
    if not found:
        return ""
    most = max(found, key=lambda one: math.inf if one.detectable is None else one.detectable)
    alike = len({one.advice for one in found}) == 1
    return _advice(most.advice) if alike else _advice(most.advice, "To tell all of them")


def _advice(text: str, purpose: str = "To tell") -> str:
    return f" {purpose}: {text.rstrip('.')}." if text else ""


def _names(ended: Sequence[Effect], full: bool = False) -> str:
    """The farthest from 1 first. `full`: with what each is compared with."""
    ranked = sorted(ended, key=lambda effect: -abs(effect.finding.ratio - 1))
    names = [
        f"{effect.contrast.name if full else _shortly(effect.contrast)} "
        f"({ratio(effect.finding.ratio)}, {interval(effect.finding)})"
        for effect in ranked[:_NAMED]
    ]
    rest = len(ranked) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _shortly(contrast: Contrast) -> str:
    return contrast.cell + (f" at {contrast.where}" if contrast.where else "")


def _nothing(study: LabStudy) -> str:
    usable = sum(len(cell.usable) for cell in study.cells)
    if not usable:
        return "No trial ended well enough to be compared: there is no answer yet."
    if not study.lab.comparisons:
        return "This lab compares no cells: it describes them."
    return "No block holds both sides of a comparison: there is no answer yet."
